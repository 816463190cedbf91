//! A replica is asked to stop with SIGTERM.

use std::time::Duration;

use serde_json::json;

use crate::support::{A, B, Database, World, promised};

under_each_lock!(waiters_hear_it_at_once_and_holders_within_three_seconds_under: redis, table, row);
under_each_lock!(a_holder_that_is_quick_ends_well_under: redis, table, row);
under_each_lock!(a_holder_whose_client_hung_up_has_its_time_too_under: redis, table, row);
under_each_lock!(what_is_written_and_not_committed_rolls_back_under: redis, table, row);
on_both_databases!(
    an_idle_replica_ends_at_once,
    a_stopped_replica_can_start_again
);

const EXIT: Duration = Duration::from_secs(5);
/// What holders have before they are rolled back.
const GRACE: Duration = Duration::from_secs(3);

async fn waiters_hear_it_at_once_and_holders_within_three_seconds_under(
    database: Database,
    lock: &str,
) {
    let world = World::own(database).start().await;
    let switches = json!({"lock": lock, "ttl_ms": 20_000, "wait_ms": 60_000});
    let room = world.room_with("stopped", switches).await.seen_from(B);

    let holder = room.books("Ana", "A1").on(A);
    let holder = holder.pausing_at("after_read").at_gate("holder").starts();
    room.one_waits_at_gate("holder", A, "after_read").await;
    let waiters: Vec<_> = (0..5)
        .map(|n| room.books(&format!("Waiter {n}"), "A1").on(A).starts())
        .collect();
    // Who waits for a lock cannot be seen from outside; but the replica has answered so much since they asked.
    for _ in 0..50 {
        room.seen_from(A).looks().await;
    }
    for waiter in &waiters {
        waiter.is_not_answered();
    }

    let start = std::time::Instant::now();
    world.terminates(A);
    for waiter in waiters {
        let answer = waiter.answer().await;
        answer.is("shutting-down");
        // At once: while the holder still has its time.
        holder.is_not_answered();
    }
    promised(
        "the waiters' answers",
        Duration::from_secs(1),
        start.elapsed(),
    );
    holder.answer().await.is("shutting-down");
    promised(
        "the holder's answer",
        GRACE + Duration::from_millis(500),
        start.elapsed(),
    );
    ends_well(&world).await;

    // Its lease had 20 s to go: it was released, not left to run out.
    let next = room.books("Ben", "A1").on(B).await;
    next.is("booked");
    promised("the next booking", Duration::from_secs(1), next.took);
    room.audit().await.is_clean_after(1);
}

async fn a_holder_that_is_quick_ends_well_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let room = world
        .room_with("stopped", json!({"lock": lock}))
        .await
        .seen_from(B);

    let holder = room.books("Ana", "A1").on(A);
    let holder = holder
        .pausing_at("after_read")
        .at_gate("holder")
        .for_ms(1000)
        .starts();
    room.one_waits_at_gate("holder", A, "after_read").await;
    world.terminates(A);
    holder.answer().await.is("booked");
    ends_well(&world).await;

    room.books("Ben", "A1").on(B).await.is("seat-taken");
    room.audit().await.is_clean_after(1);
}

/// The connection is gone, the attempt is not: it ends, and its lease of minutes is given back.
async fn a_holder_whose_client_hung_up_has_its_time_too_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let switches = json!({"lock": lock, "ttl_ms": 600_000, "wait_ms": 60_000});
    let room = world.room_with("stopped", switches).await.seen_from(B);

    let holder = room.books("Ana", "A1").on(A);
    let holder = holder
        .pausing_at("after_read")
        .at_gate("holder")
        .for_ms(1000)
        .starts();
    room.one_waits_at_gate("holder", A, "after_read").await;
    holder.hangs_up();
    world.terminates(A);
    ends_well(&world).await;

    let next = room.books("Ben", "A1").on(B).await;
    next.is("seat-taken");
    promised("the next booking", Duration::from_secs(1), next.took);
    room.audit().await.is_clean_after(1);
}

async fn what_is_written_and_not_committed_rolls_back_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let room = world
        .room_with("stopped", json!({"lock": lock}))
        .await
        .seen_from(B);

    let holder = room.transfers("alice", "bob", "80.00").on(A);
    let holder = holder
        .pausing_at("before_commit")
        .at_gate("holder")
        .starts();
    room.one_waits_at_gate("holder", A, "before_commit").await;
    world.terminates(A);
    holder.answer().await.is("shutting-down");
    ends_well(&world).await;

    assert_eq!(room.balance("alice").await, "100.00");
    assert_eq!(room.balance("bob").await, "100.00");
    room.transfers("alice", "carol", "80.00")
        .on(B)
        .await
        .is("transferred");
    room.audit().await.is_clean_after(1);
}

async fn an_idle_replica_ends_at_once(database: Database) {
    let world = World::own(database).start().await;
    world.terminates(A);
    ends_well(&world).await;
}

async fn a_stopped_replica_can_start_again(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("again").await;
    room.books("Ana", "A1").on(A).await.is("booked");
    for replica in [A, B] {
        world.terminates(replica);
        let (status, _) = world.process(replica).ends(EXIT * 3).await;
        assert_eq!(status.code(), Some(0));
    }
    for replica in [A, B] {
        world.process(replica).start();
    }
    world.is_ready().await;
    room.books("Ben", "A1").on(B).await.is("seat-taken");
    room.books("Ben", "A2").on(A).await.is("booked");
    room.audit().await.is_clean_after(2);
}

/// A ends with 0, within the promised time.
async fn ends_well(world: &World) {
    let (status, took) = world.process(A).ends(EXIT * 3).await;
    promised("the end of the replica", EXIT, took);
    assert_eq!(status.code(), Some(0), "{}", world.process(A).tail());
}
