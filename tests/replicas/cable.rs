//! The cable between one replica and its PostgreSQL has faults: connections stay open, and something does not arrive.
//!
//! Replica A is on the cable, replica B is not.

use std::time::Duration;

use serde_json::json;

use crate::support::{A, B, Database, PATIENCE, Room, Underway, World, eventually, promised};

/// How long an attempt may take whose database says nothing: what a statement has, and the server's own grace.
const SILENCE_IS_TOLD: Duration = Duration::from_secs(7);

const ATTEMPT: &str = "33333333-3333-4333-8333-333333333333";

#[tokio::test]
async fn a_database_that_says_nothing_is_unavailable_and_never_a_refusal() {
    let world = on_a_cable().await;
    let switches = [
        json!({"lock": "redis"}),
        json!({"lock": "table"}),
        json!({"lock": "row"}),
        json!({"locking": false}),
    ];
    let mut rooms = Vec::new();
    for switches in switches {
        let room = world.room_with("cable", switches).await;
        room.books("Zoe", "E1").on(A).await.is("booked");
        rooms.push(room);
    }

    world.cable().dark(true);
    let attempts = rooms.iter().flat_map(|room| {
        let booking = room.books("Ana", "A1").on(A).starts();
        [
            booking,
            room.transfers("alice", "bob", "1.00").on(A).starts(),
        ]
    });
    for attempt in attempts.collect::<Vec<_>>() {
        let answer = attempt.answer().await;
        promised(
            "what is known of a silent database",
            SILENCE_IS_TOLD,
            answer.took,
        );
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(
            ["database-unavailable", "database-busy", "lock-unavailable"]
                .contains(&answer.outcome().as_str()),
            "{answer:?}"
        );
    }
    assert_eq!(world.get(A, "/healthz").await.status, 200);
    assert_eq!(world.get(A, "/readyz").await.status, 503);
    for room in &rooms {
        room.books("Ben", "B1").on(B).await.is("booked");
    }

    world.cable().dark(false);
    for room in &rooms {
        books_when_it_can(room, "C1").await;
        room.audit().await.is_clean_after(3);
    }
}

/// The commit arrived, and its answer did not.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_and_its_lease_runs_out() {
    let (world, room) = on_a_cable_under_redis().await;
    let ana = before_its_commit(&room).await;
    world.cable().mute();
    is_unknown(&room, ana).await;

    assert_eq!(seen_from_b(&room).audit().await.leases_left, Some(1));
    room.books("Ben", "A1").on(B).await.is("seat-taken");
    seen_from_b(&room).has_no_lease_left(PATIENCE).await;
    seen_from_b(&room).audit().await.is_clean_after(1);
}

/// The commit did not arrive, and nobody knows that.
#[tokio::test]
async fn a_commit_that_is_lost_is_unknown_and_nothing_is_booked() {
    let (world, room) = on_a_cable_under_redis().await;
    let ana = before_its_commit(&room).await;
    world.cable().keep();
    is_unknown(&room, ana).await;
    world.cable().cut();

    // The lease that was left runs out first.
    room.books("Ben", "A1").on(B).await.is("booked");
    seen_from_b(&room).audit().await.is_clean_after(1);
}

/// It arrives when the next holder has the lock: he waits for the row that it has written, and sees it.
#[tokio::test]
async fn a_commit_that_arrives_late_is_seen_by_the_next_holder() {
    let (world, room) = on_a_cable_under_redis().await;
    let ana = before_its_commit(&room).await;
    world.cable().keep();
    is_unknown(&room, ana).await;

    let ben = room.books("Ben", "A1").on(B).starts();
    world.somebody_waits_for_a_row().await;
    world.cable().deliver();
    ben.answer().await.is("seat-taken");
    seen_from_b(&room).audit().await.is_clean_after(1);
}

/// The lock is the transaction, which the database knows nothing bad of.
#[tokio::test]
async fn a_holder_of_rows_that_is_cut_off_keeps_them_until_its_connection_ends() {
    let world = on_a_cable().await;
    let switches = json!({"lock": "row", "wait_ms": 500});
    let room = world.room_with("cable", switches).await;
    let ana = room.books("Ana", "A1").on(A).pausing_at("after_read");
    let ana = ana.at_gate("g").starts();
    seen_from_b(&room).waits_at_gate("g", 1).await;
    world.cable().dark(true);
    seen_from_b(&room).opens("g").await;
    let answer = ana.answer().await;
    assert_eq!(answer.json()["outcome"], "did_not_happen", "{answer:?}");

    room.books("Ben", "A1").on(B).await.is("lock-timeout");
    room.books("Ben", "A2").on(B).await.is("booked");
    world.cable().cut();
    eventually("the row is free", PATIENCE, async || {
        let answer = room.books("Ben", "A1").on(B).await;
        match answer.outcome().as_str() {
            "booked" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    seen_from_b(&room).audit().await.is_clean_after(2);
}

async fn on_a_cable() -> World {
    World::own(Database::Postgres).with_a_cable().start().await
}

async fn on_a_cable_under_redis() -> (World, Room) {
    let world = on_a_cable().await;
    // A lease that is renewed for six seconds, although its replica or the lock server may be slow.
    let switches = json!({"lock": "redis", "ttl_ms": 6000});
    let room = world.room_with("cable", switches).await;
    (world, room)
}

/// She commits over a cable that has a fault by now. Who comes next waits until her lease is over.
async fn is_unknown(room: &Room, ana: Underway) {
    seen_from_b(room).opens("g").await;
    ana.answer().await.is("outcome-unknown");
    let switches = json!({"wait_ms": 30_000});
    seen_from_b(room).switches(switches).await;
}

/// Ana has written A1 on replica A, and waits before her commit at gate `g`.
async fn before_its_commit(room: &Room) -> Underway {
    let ana = room.books("Ana", "A1").on(A).labelled(ATTEMPT);
    let ana = ana.pausing_at("before_commit").at_gate("g").starts();
    seen_from_b(room).waits_at_gate("g", 1).await;
    ana
}

fn seen_from_b(room: &Room) -> Room {
    room.seen_from(B)
}

/// A replica that is reached again works without an error.
async fn books_when_it_can(room: &Room, seat: &str) {
    let (_, took) = eventually("a booking over the mended cable", PATIENCE, async || {
        let answer = room.books("Ana", seat).on(A).await;
        match answer.status {
            201 => Ok(()),
            503 => Err(format!("{answer:?}")),
            _ => panic!("{answer:?}"),
        }
    })
    .await;
    promised(
        "a booking over the mended cable",
        Duration::from_secs(2),
        took,
    );
}
