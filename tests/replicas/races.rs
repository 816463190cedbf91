//! A race is one request: it resets the room, sends real requests to the replicas, and tells what each of them got.

use serde_json::{Value, json};

use crate::support::{A, B, Database, PATIENCE, World, eventually};

on_both_databases!(
    one_seat_has_both_outcomes,
    lost_update_has_both_outcomes,
    crossing_has_both_outcomes,
    crowd_has_both_outcomes,
    crowd_shows_a_lock_that_replicas_do_not_share,
    a_room_has_one_race_at_a_time_over_all_replicas,
    a_race_resets_the_room_first,
    a_race_says_what_the_room_lacks,
    an_unknown_race_is_named,
    with_one_replica_left_all_attempts_go_to_it,
    a_replica_that_is_silent_leaves_open_how_many_leases_are_left,
);

under_each_lock!(paused_holder_has_both_outcomes_under: redis, table);

async fn one_seat_has_both_outcomes(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("race", json!({"think_ms": 20})).await;

    // A replica that is slow for a moment has no part in a race.
    let race = some_race(&room, "one-seat", |race| {
        replicas(race) == ["A", "B"] && race["audit"]["leases_left"] == 0
    })
    .await;
    has_its_documented_shape(&race, "one-seat", 2);
    assert_eq!(outcomes(&race), ["booked", "seat-taken"]);
    assert_eq!(race["audit"]["clean"], true, "{race}");
    let mut buyers: Vec<&str> = each(&race, "buyer");
    buyers.sort_unstable();
    assert_eq!(buyers, ["Ana", "Ben"]);
    for attempt in attempts(&race) {
        let booked = attempt["outcome"] == "booked";
        assert_eq!(attempt["status"], if booked { 201 } else { 409 }, "{race}");
    }

    room.switches(json!({"locking": false, "think_ms": 200}))
        .await;
    let race = some_race(&room, "one-seat", |race| {
        outcomes(race) == ["booked", "booked"]
    })
    .await;
    assert_eq!(race["audit"]["clean"], false, "{race}");
    assert_eq!(race["audit"]["seats_sold_twice"][0]["seat"], "A1", "{race}");
    assert!(
        attempts(&race).iter().all(|one| one["token"].is_null()),
        "{race}"
    );
}

async fn lost_update_has_both_outcomes(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("race", json!({"think_ms": 20})).await;

    let race = room.race("lost-update").await;
    has_its_documented_shape(&race, "lost-update", 2);
    assert_eq!(outcomes(&race), ["insufficient-funds", "transferred"]);
    assert_eq!(race["audit"]["clean"], true, "{race}");

    room.switches(json!({"locking": false, "think_ms": 200}))
        .await;
    let race = some_race(&room, "lost-update", |race| {
        race["audit"]["money"]["difference"] == "80.00"
    })
    .await;
    assert_eq!(outcomes(&race), ["transferred", "transferred"]);
}

async fn crossing_has_both_outcomes(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("race", json!({"think_ms": 20})).await;

    let race = room.race("crossing").await;
    has_its_documented_shape(&race, "crossing", 2);
    assert_eq!(outcomes(&race), ["transferred", "transferred"]);
    assert_eq!(race["audit"]["clean"], true, "{race}");

    let switches = json!({"order": "as_given", "think_ms": 300, "wait_ms": 2000});
    room.switches(switches).await;
    let race = some_race(&room, "crossing", |race| {
        outcomes(race).contains(&"lock-timeout".to_owned())
    })
    .await;
    assert_eq!(race["audit"]["clean"], true, "{race}");
}

/// Each seat's buyers come to both replicas, so a lock of one process cannot protect it.
async fn crowd_shows_a_lock_that_replicas_do_not_share(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"lock": "mutex", "think_ms": 200, "wait_ms": 60_000});
    let room = world.room_with("race", switches).await;
    let race = some_race(&room, "crowd", |race| race["audit"]["clean"] == false).await;
    let seats = race["audit"]["seats_sold_twice"].as_array().expect("seats");
    assert!(!seats.is_empty(), "{race}");
}

/// A race in a room waits for nobody's end: it would reset the room under the other one.
async fn a_room_has_one_race_at_a_time_over_all_replicas(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"ttl_ms": 3000, "wait_ms": 20_000});
    let room = world.room_with("race", switches).await;
    let first = tokio::spawn({
        let room = room.clone();
        async move { room.asks_for_race("paused-holder").await }
    });
    // It has begun when Ana's lease stands: 3 s at least, since she sleeps on it.
    eventually("the first race's lease", PATIENCE, async || {
        let locks = world.locks_held(&room.name).await;
        if locks.is_empty() {
            Err("no lease".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
    room.seen_from(B)
        .asks_for_race("one-seat")
        .await
        .is("race-under-way");
    assert_eq!(first.await.expect("an answer").status, 200);
}

async fn crowd_has_both_outcomes(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"think_ms": 10, "wait_ms": 60_000});
    let room = world.room_with("race", switches).await;

    let race = room.race("crowd").await;
    has_its_documented_shape(&race, "crowd", 50);
    let booked = |race: &Value| {
        each(race, "outcome")
            .iter()
            .filter(|one| **one == "booked")
            .count()
    };
    assert_eq!(booked(&race), 10, "{race}");
    assert_eq!(race["audit"]["clean"], true, "{race}");

    room.switches(json!({"locking": false, "think_ms": 200}))
        .await;
    let race = some_race(&room, "crowd", |race| booked(race) > 10).await;
    assert_eq!(race["audit"]["clean"], false, "{race}");
}

async fn paused_holder_has_both_outcomes_under(database: Database, lock: &str) {
    let world = World::shared(database).await;
    let switches = json!({"lock": lock, "ttl_ms": 1000, "wait_ms": 20_000, "fencing": "off"});
    let room = world.room_with("race", switches).await;

    let race = room.race("paused-holder").await;
    has_its_documented_shape(&race, "paused-holder", 2);
    assert_eq!(outcomes(&race), ["booked", "booked"]);
    assert_eq!(race["audit"]["seats_sold_twice"][0]["seat"], "A1", "{race}");

    room.switches(json!({"fencing": "from_first_read"})).await;
    let race = room.race("paused-holder").await;
    assert_eq!(outcome_of(&race, "Ana"), "stale-token");
    assert_eq!(outcome_of(&race, "Ben"), "booked");
    assert_eq!(race["audit"]["clean"], true, "{race}");
}

async fn a_race_resets_the_room_first(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("race").await;
    let before = room.epoch().await;
    room.books("Zoe", "A1").await.is("booked");
    room.transfers("alice", "dave", "100.00")
        .await
        .is("transferred");

    let race = room.race("lost-update").await;
    assert_eq!(outcomes(&race), ["insufficient-funds", "transferred"]);
    let looks = room.looks().await;
    assert!(looks["epoch"].as_i64() > Some(before), "{looks}");
    assert_eq!(looks["seats"][0]["state"], "free", "{looks}");
    assert_eq!(room.balance("dave").await, "100.00");
    assert_eq!(race["audit"]["attempts"], 1, "{race}");
}

async fn a_race_says_what_the_room_lacks(database: Database) {
    let world = World::shared(database).await;

    let small =
        json!({"rows": 1, "columns": 1, "wallets": [{"name": "alice", "balance": "100.00"}]});
    let room = world.room_of("small", small).await;
    for race in ["lost-update", "crossing", "crowd"] {
        room.asks_for_race(race).await.is("race-needs");
    }
    let poor = json!({"wallets": [
        {"name": "alice", "balance": "5.00"},
        {"name": "bob", "balance": "0.00"},
        {"name": "carol", "balance": "0.00"},
    ]});
    let room = world.room_of("poor", poor).await;
    for race in ["lost-update", "crossing"] {
        room.asks_for_race(race).await.is("race-needs");
    }

    let room = world
        .room_with("impatient", json!({"ttl_ms": 2000, "wait_ms": 2999}))
        .await;
    room.asks_for_race("paused-holder").await.is("race-needs");
    room.switches(json!({"wait_ms": 3000})).await;
    assert_eq!(room.asks_for_race("paused-holder").await.status, 200);
}

async fn an_unknown_race_is_named(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("race").await;
    let answer = room.asks_for_race("three-legged").await;
    answer.refuses(&["invalid-field", "not-found"], "race");
}

async fn with_one_replica_left_all_attempts_go_to_it(database: Database) {
    let world = World::own(database).start().await;
    let room = world
        .room_with("alone", json!({"think_ms": 20}))
        .await
        .seen_from(B);
    world.kills(A);
    let race = room.race("one-seat").await;
    assert_eq!(replicas(&race), ["B", "B"]);
    assert_eq!(outcomes(&race), ["booked", "seat-taken"]);
}

async fn a_replica_that_is_silent_leaves_open_how_many_leases_are_left(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("silent").await;
    world.process(B).freezes().await;
    let race = room.race("one-seat").await;
    assert_eq!(replicas(&race), ["A", "A"]);
    assert!(race["audit"]["leases_left"].is_null(), "{race}");
}

/// A race whose outcome depends on timing, repeated until it shows; ten times at most.
async fn some_race(
    room: &crate::support::Room,
    race: &str,
    shows: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    for run in 1..=10 {
        last = room.race(race).await;
        if shows(&last) {
            println!("{race} showed in run {run}");
            return last;
        }
    }
    panic!("{race} never showed in 10 runs: {last}")
}

fn has_its_documented_shape(race: &Value, name: &str, count: usize) {
    assert_eq!(keys(race), ["attempts", "audit", "race"]);
    assert_eq!(race["race"], name);
    assert_eq!(attempts(race).len(), count, "{race}");
    for attempt in attempts(race) {
        let fields = [
            "attempt", "buyer", "ms", "outcome", "replica", "status", "token",
        ];
        assert_eq!(keys(attempt), fields);
        let label = attempt["attempt"].as_str().expect("a UUID");
        uuid::Uuid::parse_str(label).expect("a UUID");
        assert!(attempt["ms"].is_number(), "{attempt}");
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

fn attempts(race: &Value) -> &Vec<Value> {
    race["attempts"].as_array().expect("a list")
}

fn each<'a>(race: &'a Value, field: &str) -> Vec<&'a str> {
    let text = |attempt: &'a Value| attempt[field].as_str().expect("a text");
    attempts(race).iter().map(text).collect()
}

fn outcomes(race: &Value) -> Vec<String> {
    let mut outcomes: Vec<String> = each(race, "outcome")
        .iter()
        .map(|one| (*one).to_owned())
        .collect();
    outcomes.sort();
    outcomes
}

fn outcome_of<'a>(race: &'a Value, buyer: &str) -> &'a str {
    attempts(race)
        .iter()
        .find(|attempt| attempt["buyer"] == buyer)
        .and_then(|attempt| attempt["outcome"].as_str())
        .unwrap_or_else(|| panic!("the outcome of {buyer}: {race}"))
}

fn replicas(race: &Value) -> Vec<&str> {
    let mut replicas = each(race, "replica");
    replicas.sort_unstable();
    replicas
}
