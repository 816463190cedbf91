//! Ana and Ben ask for the same seat on two replicas.

use serde_json::json;

use crate::support::{A, Answer, B, Database, Room, World, soak};

on_both_databases!(
    is_sold_twice_without_a_lock,
    is_sold_twice_by_timing_alone,
    is_sold_once_whatever_the_gate_does,
);

under_each_lock!(is_sold_once_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);
under_each_lock!(is_sold_once_to_those_who_poll_under: redis, table, zookeeper, etcd);

/// Both have read that it is free before either of them writes.
async fn is_sold_twice_without_a_lock(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("sold-twice", json!({"locking": false}))
        .await;

    let ana = room.books("Ana", "A1").on(A);
    let ben = room.books("Ben", "A1").on(B);
    let ana = ana.pausing_at("after_read").at_gate("both").starts();
    let ben = ben.pausing_at("after_read").at_gate("both").starts();
    room.both_wait_at_gate("both", "after_read").await;
    room.opens("both").await;

    ana.answer().await.is("booked");
    ben.answer().await.is("booked");
    room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
}

/// Nobody steers it: the window is 200 ms wide, and how often both fall into it is counted.
async fn is_sold_twice_by_timing_alone(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("by-timing", json!({"locking": false, "think_ms": 200}))
        .await;

    let mut twice = 0;
    for column in 1..=8 {
        twice += usize::from(both_ask(&room, &format!("A{column}")).await == ["booked", "booked"]);
    }
    for column in 1..=2 {
        twice += usize::from(both_ask(&room, &format!("B{column}")).await == ["booked", "booked"]);
    }
    println!("sold twice by timing alone: {twice} of 10");
    assert!(twice >= 1, "never in 10 runs");
    assert_eq!(room.audit().await.seats_sold_twice.len(), twice);
}

/// The same two attempts, and only one of them can come to the gate while the other one is there.
async fn is_sold_once_whatever_the_gate_does(database: Database) {
    let world = World::shared(database).await;
    for lock in ["redis", "table"] {
        let room = world.room_with("gated", json!({"lock": lock})).await;

        let ana = room.books("Ana", "A1").on(A);
        let ana = ana.pausing_at("after_read").at_gate("ana").starts();
        room.one_waits_at_gate("ana", A, "after_read").await;
        let ben = room.books("Ben", "A1").on(B);
        let ben = ben.pausing_at("after_read").at_gate("ben").starts();
        room.opens("ana").await;
        ana.answer().await.is("booked");

        room.one_waits_at_gate("ben", B, "after_read").await;
        room.opens("ben").await;
        ben.answer().await.is("seat-taken");
        room.audit().await.is_clean_after(1);
    }
}

/// 100 seats, each wanted by two at the same moment: always one gets it and the other one hears that it is taken.
async fn is_sold_once_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    for _ in 0..soak() {
        let room = world
            .room_of("sold-once", json!({"rows": 10, "columns": 10}))
            .await;
        room.switches(json!({"lock": lock, "think_ms": 20, "ttl_ms": 20_000, "wait_ms": 30_000}))
            .await;

        for row in 'A'..='J' {
            for column in 1..=10 {
                let seat = format!("{row}{column}");
                let outcomes = both_ask(&room, &seat).await;
                assert_eq!(outcomes, ["booked", "seat-taken"], "seat {seat}");
            }
        }
        room.audit().await.is_clean_after(100);
    }
}

/// The same for waiters that nobody wakes.
async fn is_sold_once_to_those_who_poll_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let switches = json!({"lock": lock, "waiting": "backoff", "think_ms": 20, "ttl_ms": 20_000, "wait_ms": 30_000});
    let room = world.room_with("polling", switches).await;
    for seat in ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8"] {
        assert_eq!(
            both_ask(&room, seat).await,
            ["booked", "seat-taken"],
            "seat {seat}"
        );
    }
    room.audit().await.is_clean_after(8);
}

/// Ana on A and Ben on B at once; what they got, in alphabetical order.
async fn both_ask(room: &Room, seat: &str) -> [String; 2] {
    let ana = room.books("Ana", seat).on(A).starts();
    let ben = room.books("Ben", seat).on(B).starts();
    let answers: [Answer; 2] = [ana.answer().await, ben.answer().await];
    let mut outcomes = answers.map(|answer| answer.outcome());
    outcomes.sort();
    outcomes
}
