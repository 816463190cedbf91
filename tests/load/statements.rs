//! `benches/booking.sql`, against which bookings are measured, is what a replica really sends: compared with what
//! PostgreSQL logs of a booking.

use std::path::{Path, PathBuf};

use serde_json::json;
use sqlx::{Connection, PgConnection, Row};

use crate::support::{A, Database, PATIENCE, World, eventually};

const SCRIPT: &str = include_str!("../../benches/booking.sql");

#[tokio::test]
async fn the_statements_that_are_measured_are_those_of_a_booking() {
    let world = World::own(Database::Postgres)
        .with_its_own_postgres()
        .start()
        .await;
    let room = world
        .room_with(
            "measured",
            json!({"lock": "redis", "fencing": "from_first_read"}),
        )
        .await;
    let mut database = PgConnection::connect(world.database_url())
        .await
        .expect("the database");
    let log = log_of(&mut database).await;
    tells_statements(&mut database, true).await;
    let (sent, _) = eventually("a logged booking", PATIENCE, async || {
        let before = read(&log).len();
        // Until the new setting has reached every connection of the replica, some statements are not logged.
        let seat = format!("A{}", 1 + before % 8);
        room.books("Ana", &seat).on(A).await;
        let logged = booking_in(&read(&log)[before..]);
        let is_whole = logged
            .iter()
            .any(|statement| statement.contains("INSERT INTO booking"))
            && logged.last().is_some_and(|statement| statement == "COMMIT");
        if is_whole {
            Ok(logged)
        } else {
            Err(format!("{logged:#?}"))
        }
    })
    .await;
    tells_statements(&mut database, false).await;
    assert_eq!(
        sent,
        measured(),
        "benches/booking.sql should be what is sent"
    );
}

/// Where the server logs: beside its data, as `stack` starts it.
async fn log_of(database: &mut PgConnection) -> PathBuf {
    let row = sqlx::query("SHOW data_directory")
        .fetch_one(database)
        .await
        .expect("a setting");
    let data: String = row.get(0);
    let server = Path::new(&data).parent().expect("the server's folder");
    let log = server.parent().expect("its parent").join("postgres.log");
    assert!(log.exists(), "{}", log.display());
    log
}

async fn tells_statements(database: &mut PgConnection, all: bool) {
    let set = if all {
        "ALTER SYSTEM SET log_statement = 'all'"
    } else {
        "ALTER SYSTEM RESET log_statement"
    };
    for statement in [set, "SELECT pg_reload_conf()"] {
        sqlx::query(statement)
            .execute(&mut *database)
            .await
            .expect("it is set");
    }
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).expect("the log")
}

/// From the read of the room on, all that belongs to the booking.
fn booking_in(log: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut is_statement = false;
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            if let (true, Some(last)) = (is_statement, statements.last_mut()) {
                last.push(' ');
                last.push_str(rest);
            }
            continue;
        }
        let text = line
            .split_once("LOG:  execute ")
            .and_then(|(_, rest)| rest.split_once(": "))
            .or_else(|| line.split_once("LOG:  statement: "));
        is_statement = text.is_some();
        statements.extend(text.map(|(_, text)| text.to_owned()));
    }
    let statements = statements.iter().flat_map(|statement| statement.split(';'));
    let statements: Vec<_> = statements.map(|statement| plain(statement, '$')).collect();
    let first = statements
        .iter()
        .position(|statement| statement.starts_with("SELECT room.room_id"));
    let booking = statements.into_iter().skip(first.unwrap_or(usize::MAX));
    // Replicas look after each other meanwhile.
    booking
        .filter(|statement| {
            !statement.contains("replica ORDER") && !statement.contains("FROM replica")
        })
        .collect()
}

/// The statements of the script.
fn measured() -> Vec<String> {
    let lines = SCRIPT
        .lines()
        .filter(|line| !line.starts_with('\\') && !line.starts_with("--"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let statements = text.split(';').map(|statement| plain(statement, ':'));
    statements
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// On one line, with `?` for every parameter, which stands behind this sign, and for the time that a statement may take.
fn plain(statement: &str, sign: char) -> String {
    let mut plain = String::new();
    let mut rest = statement;
    while let Some((before, after)) = rest.split_once(sign) {
        let end = after
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        plain.push_str(before);
        plain.push('?');
        rest = &after[end..];
    }
    plain.push_str(rest);
    let words = plain
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace(',', " , ");
    let words: Vec<_> = words.split_whitespace().collect();
    match words.as_slice() {
        [set @ .., _] if set.ends_with(&["statement_timeout", "="]) => {
            format!("{} ?", set.join(" "))
        }
        words => words.join(" "),
    }
}
