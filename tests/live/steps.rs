//! What is told of attempts, by whichever replica they run on.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::stream::{Event, Stream};
use crate::support::{A, B, Database, PATIENCE, World, eventually};

on_both_databases!(
    fifty_attempts_at_once_are_told_whole_and_in_order,
    steps_of_both_replicas_come_in_the_order_of_their_times,
    a_lease_that_ends_in_a_pause_is_told_as_lost,
);

/// Races that are looked at. Time alone decides whether a line of the other replica comes within the window.
const RACES: usize = 5;

async fn steps_of_both_replicas_come_in_the_order_of_their_times(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("order", json!({"think_ms": 100})).await;
    let stream = Stream::settled(&world, A, &room.name).await;
    let mut in_order = 0;
    for _ in 0..RACES {
        let before = stream.events().len();
        room.race("one-seat").await;
        let events = stream.of_a_race(before, 2).await;
        let told = events
            .iter()
            .filter(|event| ["step", "ended", "race"].contains(&event.name.as_str()));
        let told: Vec<&Value> = told.map(|event| &event.data).collect();
        assert_eq!(told[0]["state"], "began");

        let steps: Vec<&Value> = told
            .iter()
            .filter(|told| told["kind"].is_string())
            .copied()
            .collect();
        let replicas: BTreeSet<&str> = steps
            .iter()
            .filter_map(|step| step["replica"].as_str())
            .collect();
        if replicas != BTreeSet::from(["A", "B"]) {
            println!("one of them was slow, and took no part: {replicas:?}");
            continue;
        }
        for who in ["Ana", "Ben"] {
            is_a_whole_attempt(&steps, who);
        }
        let ends = told.iter().filter_map(|told| told["outcome"].as_str());
        assert_eq!(
            ends.collect::<BTreeSet<_>>(),
            BTreeSet::from(["booked", "seat-taken"])
        );

        let times: Vec<f64> = told
            .iter()
            .filter_map(|told| told["at_ms"].as_f64())
            .collect();
        assert_eq!(times.len(), told.len());
        in_order += usize::from(times.is_sorted());
    }
    println!("{in_order} of {RACES} races were told in order");
    assert!(in_order > 0);
}

impl Stream {
    /// What is told of a race with so many attempts, which began after the first `before` events. Steps of a replica
    /// that is slow may come after its end.
    async fn of_a_race(&self, before: usize, attempts: usize) -> Vec<Event> {
        let over = |data: &Value| data["state"] == "ended";
        self.first_after(before, "race", over).await;
        let told = async || {
            let events = self.events().split_off(before);
            let ended = events.iter().filter(|event| event.name == "ended").count();
            match ended == attempts {
                true => Ok(events),
                false => Err(format!("{ended} of {attempts} attempts have ended")),
            }
        };
        eventually("the end of all attempts", PATIENCE, told)
            .await
            .0
    }
}

fn is_a_whole_attempt(steps: &[&Value], who: &str) {
    let own: Vec<&&Value> = steps.iter().filter(|step| step["who"] == who).collect();
    let kinds: Vec<&str> = own
        .iter()
        .filter_map(|step| step["kind"].as_str())
        .collect();
    assert_eq!(
        kinds[..4],
        ["began", "asked", "granted", "read"],
        "{kinds:?}"
    );
    assert_eq!(kinds.last(), Some(&"released"), "{kinds:?}");
    let granted = own[2];
    assert_eq!(granted["what"], format!("{who} books A1"));
    assert!(granted["token"].is_i64(), "{granted}");
    let lasts =
        granted["until_ms"].as_f64().expect("a time") - granted["at_ms"].as_f64().expect("a time");
    assert!(lasts > 0.0 && lasts <= 2000.0, "{granted}");
}

/// Without a window in which lines wait for each other this is never so.
async fn fifty_attempts_at_once_are_told_whole_and_in_order(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("crowd").await;
    let stream = Stream::settled(&world, A, &room.name).await;
    for race in 1..=RACES {
        let before = stream.events().len();
        room.race("crowd").await;
        let events = stream.of_a_race(before, 50).await;
        let times = events
            .iter()
            .filter_map(|event| event.data["at_ms"].as_f64());
        if times.is_sorted() {
            println!("race {race} was told in order");
            return;
        }
    }
    panic!("none of {RACES} races was told in order");
}

async fn a_lease_that_ends_in_a_pause_is_told_as_lost(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"ttl_ms": 2000, "wait_ms": 20_000});
    let room = world.room_with("lost", switches).await;
    let stream = Stream::settled(&world, B, &room.name).await;
    room.race("paused-holder").await;
    let lost = stream
        .first("step", |step| step["kind"] == "lost")
        .await
        .data;
    assert_eq!(lost["who"], "Ana");
    let ended = |data: &Value| data["state"] == "ended";
    stream.first("race", ended).await;
    let steps = stream.all("step");
    let of_ana = |kind: &str| {
        let mut steps = steps.iter();
        steps
            .find(|step| step["who"] == "Ana" && step["kind"] == kind)
            .expect("a step")
    };
    let granted = of_ana("granted");
    assert_eq!(lost["token"], granted["token"]);
    assert!(
        lost["at_ms"].as_f64() >= granted["until_ms"].as_f64(),
        "{lost}, {granted}"
    );
    assert!(lost["at_ms"].as_f64() < of_ana("resumed")["at_ms"].as_f64());
    assert_eq!(
        steps.iter().filter(|step| step["kind"] == "lost").count(),
        1
    );
}
