//! A replica dies with SIGKILL while it holds a lock.

use std::time::Duration;

use serde_json::json;

use crate::support::{A, B, Database, World, promised};

under_each_lock!(while_holding_frees_the_seat_for_the_next_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);
under_each_lock!(before_its_commit_leaves_nothing_half_written_under: redis, table, row);
under_each_lock!(after_its_commit_leaves_the_whole_booking_under: redis, table, row);

const TTL_MS: u64 = 2000;

/// The default of a replica.
const ZOOKEEPER_SESSION_MS: u64 = 4000;

/// The next attempt is sent at the kill and needs no second try. Bug 40: also when what died had rows locked.
async fn while_holding_frees_the_seat_for_the_next_under(database: Database, lock: &str) {
    let world = World::own(database).with(lock).start().await;
    let room = world.room("killed").await.seen_from(B);
    let (wait_ms, promise) = patience_under(lock);
    room.switches(json!({"lock": lock, "ttl_ms": TTL_MS, "wait_ms": wait_ms}))
        .await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("after_read").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "after_read").await;
    world.kills(A);
    let ben = room.books("Ben", "A1").on(B).await;
    assert!(
        ana.result().await.is_err(),
        "a dead replica does not answer"
    );

    ben.is("booked");
    promised(&format!("the next attempt under {lock}"), promise, ben.took);
    room.audit().await.is_clean_after(1);
}

/// A transfer has written both wallets and has not committed.
async fn before_its_commit_leaves_nothing_half_written_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let room = world.room("killed").await.seen_from(B);
    let (wait_ms, promise) = patience_under(lock);
    room.switches(json!({"lock": lock, "ttl_ms": TTL_MS, "wait_ms": wait_ms}))
        .await;

    let dying = room.transfers("alice", "bob", "80.00").on(A);
    let dying = dying.pausing_at("before_commit").at_gate("dying").starts();
    room.one_waits_at_gate("dying", A, "before_commit").await;
    world.kills(A);
    let next = room.transfers("alice", "carol", "80.00").on(B).await;
    assert!(
        dying.result().await.is_err(),
        "a dead replica does not answer"
    );

    next.is("transferred");
    promised(
        &format!("the next transfer under {lock}"),
        promise,
        next.took,
    );
    assert_eq!(room.balance("alice").await, "20.00");
    assert_eq!(room.balance("bob").await, "100.00");
    assert_eq!(room.balance("carol").await, "180.00");
    room.audit().await.is_clean_after(1);
}

/// The client never hears of it, but the seat is sold.
async fn after_its_commit_leaves_the_whole_booking_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let room = world.room("killed").await.seen_from(B);
    let (wait_ms, _) = patience_under(lock);
    room.switches(json!({"lock": lock, "ttl_ms": TTL_MS, "wait_ms": wait_ms}))
        .await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("after_commit").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "after_commit").await;
    world.kills(A);
    let ben = room.books("Ben", "A1").on(B).await;
    assert!(
        ana.result().await.is_err(),
        "a dead replica does not answer"
    );

    ben.is("seat-taken");
    room.audit().await.is_clean_after(1);
    world.starts(A).await;
    room.books("Cem", "A2").on(A).await.is("booked");
}

/// How long the next attempt may wait, and how long it is promised to take.
fn patience_under(lock: &str) -> (u64, Duration) {
    match lock {
        "row" => (5000, Duration::from_secs(1)),
        // What counts there is the session, and not `ttl_ms`.
        "zookeeper" => (
            ZOOKEEPER_SESSION_MS + 5000,
            Duration::from_millis(ZOOKEEPER_SESSION_MS + 1000),
        ),
        _ => (TTL_MS + 5000, Duration::from_millis(TTL_MS + 1000)),
    }
}
