//! A room that somebody else changes during a run: nobody is accused, and nothing is said to be right.

use reqwest::Method;
use serde_json::{Value, json};

use crate::generator::{CROWD, Load, Loaded};
use crate::support::{A, Database, World};

#[tokio::test]
async fn a_room_that_is_reset_accuses_nobody_and_says_so() {
    let ran = disturbed_by(Method::POST, "/reset", json!({})).await;
    is_unknown_since(&ran, "somebody reset it");
}

#[tokio::test]
async fn a_room_that_is_made_anew_accuses_nobody_and_says_so() {
    // With default switches, which are not those of the run.
    let ran = disturbed_by(Method::PUT, "", json!({})).await;
    is_unknown_since(&ran, "somebody changed its switches");
}

#[tokio::test]
async fn violations_under_switches_of_somebody_else_are_not_the_sides() {
    let ran = disturbed_by(Method::PATCH, "/switches", json!({"locking": false})).await;
    is_unknown_since(&ran, "somebody changed its switches");
}

/// At the end it looks as it did at the beginning.
#[tokio::test]
async fn switches_that_are_set_back_are_seen_at_what_was_done_meanwhile() {
    let switched = |on: bool| (Method::PATCH, "/switches", json!({"locking": on}));
    let ran = disturbed([switched(false), switched(true)]).await;
    is_unknown_since(&ran, "somebody changed its switches");
}

async fn disturbed_by(method: Method, path: &str, body: Value) -> Loaded {
    disturbed([(method, path, body)]).await
}

/// By these changes one after the other, each after attempts under those before it.
async fn disturbed<const N: usize>(changes: [(Method, &str, Value); N]) -> Loaded {
    let world = World::own(Database::Sqlite).start().await;
    let threshold = ["--threshold", "violations = 0"];
    // Long enough that the changes come before its end, on any machine.
    let crowd = CROWD.map(|flag| if flag == "4s" { "10s" } else { flag });
    let running = Load::on(&world, &[&crowd[..], &threshold].concat()).starts();
    for (number, (method, path, body)) in (1..).zip(changes) {
        let room = running.has_made(&world, A, 20 * number).await;
        let path = format!("/api/rooms/{room}{path}");
        let answer = world.request(A, method, &path).json(&body).send().await;
        assert!(answer.expect("an answer").status().is_success());
    }
    let ran = running.ends().await;
    ran.left_no_room(&world).await;
    ran
}

#[track_caller]
fn is_unknown_since(ran: &Loaded, why: &str) {
    ran.exits_with(2);
    let side = ran.side("defaults");
    assert_eq!(side["outcome"], "unknown", "{side}");
    assert_eq!(side["verdict"]["findings"], json!({}), "{side}");
    let undecided = side["verdict"]["undecided"][0].as_str();
    assert!(undecided.is_some_and(|told| told.contains(why)), "{side}");
    assert!(ran.table.contains(why), "{}", ran.table);
    assert!(ran.page.contains(why), "{}", ran.page);
}
