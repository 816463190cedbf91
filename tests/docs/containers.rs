//! The container files set what the program knows and name exactly what they start.

use std::collections::BTreeSet;

use clap::CommandFactory;
use doublebook::commands::{Cli, lock_servers};
use doublebook::stack::found;
use serde_json::Value;

use crate::read;

fn compose() -> Value {
    serde_saphyr::from_str(&read("docker-compose.yml")).expect("YAML")
}

fn services(compose: &Value) -> impl Iterator<Item = (&String, &Value)> {
    compose["services"].as_object().expect("services").iter()
}

/// The environment variables that the program reads.
fn variables() -> BTreeSet<String> {
    let cli = Cli::command();
    let commands = std::iter::once(&cli).chain(cli.get_subcommands());
    let variables = commands.flat_map(|command| {
        command
            .get_arguments()
            .filter_map(|argument| argument.get_env())
    });
    let known = variables.map(|name| name.to_string_lossy().into_owned());
    // Those of the AWS library are its own.
    let others = [
        "RUST_LOG",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ];
    known.chain(others.map(str::to_owned)).collect()
}

/// Whether an image is named with its tag, which is not the one that moves.
fn has_a_tag(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':')
        .is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest")
}

#[test]
fn the_replicas_are_told_only_what_they_know() {
    let (compose, known) = (compose(), variables());
    let replicas: Vec<_> = services(&compose)
        .filter(|(_, service)| service["build"] == ".")
        .collect();
    assert_eq!(replicas.len(), 2);
    for (name, service) in replicas {
        let environment = service["environment"].as_object().expect("an environment");
        for variable in environment.keys() {
            assert!(known.contains(variable), "{name}: {variable}");
        }
        for needed in [
            "DATABASE_URL",
            "REDIS_URL",
            "DOUBLEBOOK_NAME",
            "DOUBLEBOOK_ADVERTISE",
        ] {
            assert!(environment.contains_key(needed), "{name}: {needed}");
        }
    }
}

#[test]
fn every_image_has_a_tag() {
    for (name, service) in services(&compose()) {
        let image = service["image"].as_str().expect("an image");
        assert!(has_a_tag(image), "{name}: {image}");
    }
    let dockerfile = read("Dockerfile");
    let images: Vec<_> = instructions(&dockerfile, "FROM").collect();
    assert_eq!(images.len(), 2, "a build, and what runs");
    for image in images {
        assert!(
            has_a_tag(image.split(' ').next().expect("an image")),
            "{image}"
        );
    }
}

/// What somebody waits for must say when it is healthy; the replicas' own check is in their image.
#[test]
fn replicas_wait_for_servers_that_tell_their_health() {
    let compose = compose();
    for replica in ["a", "b"] {
        let before = compose["services"][replica]["depends_on"]
            .as_object()
            .expect("an order");
        let always = before.iter().filter(|(_, wait)| wait["required"] != false);
        assert_eq!(
            always.map(|(name, _)| name).collect::<Vec<_>>(),
            ["postgres", "redis"]
        );
        for (server, wait) in before {
            assert_eq!(
                wait["condition"], "service_healthy",
                "{replica} waits for {server}"
            );
            assert!(
                compose["services"][server]["healthcheck"]["test"].is_array(),
                "{server}"
            );
        }
    }
}

/// The profile has every lock server, and the replicas are told where each is.
#[test]
fn the_profile_of_all_locks_has_what_the_replicas_are_told() {
    let compose = compose();
    let in_profile: BTreeSet<&str> = services(&compose)
        .filter(|(_, service)| service["profiles"][0] == "all-locks")
        .map(|(name, _)| name.as_str())
        .collect();
    let waited_for = compose["services"]["a"]["depends_on"]
        .as_object()
        .expect("an order");
    let optional = waited_for
        .iter()
        .filter(|(_, wait)| wait["required"] == false);
    assert_eq!(
        optional
            .map(|(name, _)| name.as_str())
            .collect::<BTreeSet<_>>(),
        in_profile
    );

    let environment = &compose["services"]["a"]["environment"];
    for server in found::LOCK_SERVERS {
        let address = environment[lock_servers::variable(server)].as_str();
        let address = address.unwrap_or_else(|| panic!("no address of {}", server.name()));
        let hosts = address.split(',').map(host);
        for host in hosts {
            assert!(in_profile.contains(host) || host == "redis", "{host}");
        }
    }
}

/// The host of `scheme://host:port`, where scheme and port may be left out.
fn host(address: &str) -> &str {
    let (_, host) = address.split_once("://").unwrap_or(("", address));
    host.split(':').next().unwrap_or(host)
}

#[test]
fn replicas_are_reached_where_they_listen() {
    let compose = compose();
    for (name, port) in [("a", 3001), ("b", 3002)] {
        let service = &compose["services"][name];
        assert_eq!(service["ports"][0], format!("127.0.0.1:{port}:{port}"));
        let environment = &service["environment"];
        assert_eq!(environment["DOUBLEBOOK_LISTEN"], format!("0.0.0.0:{port}"));
        assert_eq!(
            environment["DOUBLEBOOK_ADVERTISE"],
            format!("http://{name}.localhost:{port}")
        );
        assert_eq!(
            service["networks"]["default"]["aliases"][0],
            format!("{name}.localhost")
        );
    }
}

#[test]
fn the_image_is_run_by_an_ordinary_user_and_tells_its_health() {
    let (dockerfile, known) = (read("Dockerfile"), variables());
    let (_, last) = dockerfile.rsplit_once("\nFROM ").expect("a last stage");
    let user = instructions(last, "USER").next().expect("a user");
    assert!(
        !user.starts_with("root") && !user.starts_with('0'),
        "{user}"
    );
    assert!(last.contains(r#"CMD ["/usr/local/bin/doublebook", "health"]"#));
    let joined = last.replace("\\\n", " ");
    for set in instructions(&joined, "ENV").flat_map(str::split_whitespace) {
        let (variable, _) = set.split_once('=').expect("a variable and its value");
        assert!(known.contains(variable), "{variable}");
    }
}

/// What stands behind an instruction, wherever it is used.
fn instructions<'a>(dockerfile: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = dockerfile.lines();
    lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
}
