//! Tables that repeat what the program knows are compared with it.

use clap::CommandFactory;
use doublebook::commands::Cli;
use doublebook::lock::LockName;
use doublebook::lock::systems::table::{POSTGRES_DDL, POSTGRES_WAITERS_DDL, SQLITE_DDL};
use doublebook::metrics::{Described, Metrics};

use crate::read;

/// What stands between `<!-- name: … -->` and `<!-- /name -->`.
fn between(document: &str, name: &str) -> String {
    let text = read(document);
    let (_, rest) = text
        .split_once(&format!("<!-- {name}:"))
        .expect("the table begins");
    let (_, rest) = rest.split_once("-->").expect("the mark ends");
    let (table, _) = rest
        .split_once(&format!("<!-- /{name} -->"))
        .expect("the table ends");
    table.trim().to_owned()
}

#[test]
fn the_table_of_locks_is_the_programs_own() {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let head = "| lock | what it promises | what it cannot | token | ends by itself | survives the loss of a server |\n\
                |---|---|---|---|---|---|";
    let rows = LockName::ALL.map(|name| {
        let of = name.guarantees();
        format!(
            "| `{name}` | {} | {} | {} | {} | {} |",
            of.promise,
            of.cannot,
            of.token.unwrap_or("none"),
            yes(of.expires_by_itself),
            yes(of.survives_loss_of_one_server),
        )
    });
    let expected = format!("{head}\n{}", rows.join("\n"));
    assert_eq!(
        between("README.md", "locks"),
        expected,
        "README.md should say:\n{expected}\n"
    );
}

#[test]
fn the_table_of_settings_is_the_command_line() {
    let mut rows = vec![
        "| command | flag | environment | default | |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    let cli = Cli::command();
    let commands = cli
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    for command in commands {
        for argument in command.get_arguments() {
            let (Some(flag), Some(variable)) = (argument.get_long(), argument.get_env()) else {
                continue;
            };
            let defaults: Vec<_> = argument
                .get_default_values()
                .iter()
                .map(|value| value.to_string_lossy())
                .collect();
            let help = argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default()
                .replace('\n', " ");
            let default = if defaults.is_empty() {
                String::new()
            } else {
                format!("`{}`", defaults.join(","))
            };
            let command = command.get_name();
            rows.push(format!(
                "| `{command}` | `--{flag}` | `{}` | {default} | {help} |",
                variable.to_string_lossy()
            ));
        }
    }
    let expected = rows.join("\n");
    assert_eq!(
        between("docs/operating.md", "settings"),
        expected,
        "docs/operating.md should say:\n{expected}\n"
    );
}

#[test]
fn the_table_of_metrics_is_the_programs_own() {
    let metrics = Metrics::default();
    let rows = metrics.described().iter().map(|metric| {
        let Described { name, kind, help } = metric;
        format!("| `{name}` | {kind} | {help} |")
    });
    let head = "| name | type | |\n|---|---|---|".to_owned();
    let expected = std::iter::once(head)
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(
        between("docs/operating.md", "metrics"),
        expected,
        "docs/operating.md should say:\n{expected}\n"
    );
}

#[test]
fn the_lease_table_of_the_migrations_is_the_lock_librarys_own() {
    let migration = |file: &str| read(&format!("migrations/{file}.sql"));
    assert!(migration("postgres/0002_lock_lease").ends_with(POSTGRES_DDL));
    assert!(migration("postgres/0003_lock_lease_waiters").ends_with(POSTGRES_WAITERS_DDL));
    assert!(migration("sqlite/0002_lock_lease").ends_with(SQLITE_DDL));
}
