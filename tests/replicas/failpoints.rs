//! Pauses and gates, on which all certainty of these tests rests; and a replica that refuses them.

use serde_json::json;

use crate::support::{A, B, Database, World};

on_both_databases!(
    each_point_of_a_booking_can_be_stopped_at,
    a_pause_ends_by_itself,
    a_gate_lets_go_before_the_time_is_over,
    a_pause_is_taken_once,
    a_pause_and_work_use_up_no_wait,
    many_attempts_before_their_commit_keep_nobody_from_their_gate,
    a_replica_without_failpoints_refuses_them,
);

async fn each_point_of_a_booking_can_be_stopped_at(database: Database) {
    let world = World::own(database).start().await;
    for lock in ["redis", "table", "row", "mutex"] {
        let room = world.room_with("points", json!({"lock": lock})).await;
        let points = [
            "after_grant",
            "after_read",
            "before_write",
            "before_commit",
            "after_commit",
        ];
        for (number, point) in points.into_iter().enumerate() {
            let seat = format!("A{}", number + 1);
            let ana = room.books("Ana", &seat).on(B);
            let ana = ana.pausing_at(point).at_gate("here").starts();
            room.one_waits_at_gate("here", B, point).await;
            let sold = room.looks().await["seats"][number]["state"] == "sold";
            assert_eq!(sold, point == "after_commit", "{lock}, {point}");
            ana.is_not_answered();
            room.opens("here").await;
            ana.answer().await.is("booked");
        }
        room.audit().await.is_clean_after(5);
    }
}

async fn a_pause_ends_by_itself(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("pause").await;
    let ana = room
        .books("Ana", "A1")
        .pausing_at("after_read")
        .for_ms(300)
        .await;
    ana.is("booked");
    assert!(ana.took.as_millis() >= 300, "it paused: {:?}", ana.took);
    let ben = room
        .books("Ben", "A2")
        .pausing_at("after_read")
        .at_gate("nobody")
        .for_ms(300);
    let ben = ben.await;
    ben.is("booked");
    assert!(ben.took.as_millis() >= 300, "it paused: {:?}", ben.took);
    let cem = room
        .books("Cem", "A3")
        .pausing_at("after_read")
        .for_ms(0)
        .await;
    cem.is("booked");
}

async fn a_gate_lets_go_before_the_time_is_over(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("gate").await;
    let ana = room
        .books("Ana", "A1")
        .pausing_at("after_read")
        .at_gate("g")
        .for_ms(60_000)
        .starts();
    room.one_waits_at_gate("g", A, "after_read").await;
    room.opens("g").await;
    let ana = ana.answer().await;
    ana.is("booked");
    assert!(ana.took.as_millis() < 60_000, "{:?}", ana.took);
}

/// A transfer `as_given` is granted two locks one after the other, and waits after the first of them only.
async fn a_pause_is_taken_once(database: Database) {
    let world = World::shared(database).await;
    for lock in ["redis", "table"] {
        let switches = json!({"lock": lock, "order": "as_given", "wait_ms": 20_000});
        let room = world.room_with("once", switches).await;
        let transfer = room.transfers("bob", "alice", "1.00").on(B);
        let transfer = transfer.pausing_at("after_grant").at_gate("g").starts();
        room.one_waits_at_gate("g", B, "after_grant").await;
        // It holds bob and not yet alice.
        room.transfers("alice", "carol", "1.00")
            .on(A)
            .await
            .is("transferred");
        room.opens("g").await;
        transfer.answer().await.is("transferred");
        assert!(room.gate("g").await.is_empty());
        room.audit().await.is_clean_after(2);
    }
}

/// `wait_ms` limits the waiting for locks and for the database, not what an attempt does in between.
async fn a_pause_and_work_use_up_no_wait(database: Database) {
    let world = World::own(database).start().await;
    for lock in ["redis", "table", "row"] {
        let switches = json!({"lock": lock, "wait_ms": 0, "think_ms": 1800, "ttl_ms": 20_000});
        let room = world.room_with("no-wait", switches).await;
        let ana = room
            .books("Ana", "A1")
            .pausing_at("before_commit")
            .for_ms(1800)
            .await;
        ana.is("booked");
        let ben = room
            .books("Ben", "A2")
            .pausing_at("after_read")
            .for_ms(1800)
            .await;
        ben.is("booked");
        room.audit().await.is_clean_after(2);
    }
}

/// On SQLite one of them holds the file and the others wait for it; on PostgreSQL each holds a connection.
async fn many_attempts_before_their_commit_keep_nobody_from_their_gate(database: Database) {
    let world = World::own(database).start().await;
    let switches = json!({"locking": false, "wait_ms": 20_000});
    let room = world.room_with("crowded-gate", switches).await;
    let at_once = if database == Database::Postgres { 8 } else { 1 };
    let attempts: Vec<_> = (0..20)
        .map(|n| {
            let seat = format!("{}{}", ["A", "B", "C"][n / 8], n % 8 + 1);
            let attempt = room
                .books("Ana", &seat)
                .pausing_at("before_commit")
                .at_gate("g");
            attempt.starts()
        })
        .collect();
    let mut gone = 0;
    while gone < attempts.len() {
        let next = at_once.min(attempts.len() - gone);
        room.at_least_wait_at_gate("g", next).await;
        gone += room.opens("g").await.len();
    }
    for attempt in attempts {
        attempt.answer().await.is("booked");
    }
    room.audit().await.is_clean_after(20);
}

async fn a_replica_without_failpoints_refuses_them(database: Database) {
    let world = World::own(database)
        .serving(&["--no-failpoints"])
        .start()
        .await;
    let room = world.room("no-failpoints").await;
    let before = room.looks_at_rest().await;
    for pause in [
        json!({"at": "after_read", "ms": 1}),
        json!({"at": "after_read", "gate": "g"}),
    ] {
        let booking = room.books("Ana", "A1").with("pause", pause.clone()).await;
        booking.refuses(&["failpoints-off"], "failpoints");
        let transfer = room
            .transfers("alice", "bob", "1.00")
            .with("pause", pause)
            .await;
        transfer.refuses(&["failpoints-off"], "failpoints");
    }
    assert_eq!(room.looks_at_rest().await, before);
    room.books("Ana", "A1").await.is("booked");
}
