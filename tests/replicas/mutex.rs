//! A mutex is a lock inside one process, so a second replica does not see it.

use serde_json::json;

use crate::support::{A, B, Database, World};

on_both_databases!(
    between_two_replicas_sells_twice,
    inside_one_replica_sells_once
);

async fn between_two_replicas_sells_twice(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("mutex", json!({"lock": "mutex"})).await;

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

async fn inside_one_replica_sells_once(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"lock": "mutex", "think_ms": 20});
    let room = world.room_with("mutex", switches).await;

    for seat in (1..=20).map(|n| format!("{}{}", ["A", "B", "C"][(n - 1) / 8], (n - 1) % 8 + 1)) {
        let ana = room.books("Ana", &seat).on(A).starts();
        let ben = room.books("Ben", &seat).on(A).starts();
        let mut outcomes = [ana.answer().await.outcome(), ben.answer().await.outcome()];
        outcomes.sort();
        assert_eq!(outcomes, ["booked", "seat-taken"], "seat {seat}");
    }
    room.audit().await.is_clean_after(20);
}
