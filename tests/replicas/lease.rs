//! Leases that nobody renews, and what their holders may still do.

use serde_json::json;

use crate::support::{A, Answer, B, Database, PATIENCE, Room, Underway, World};

under_each_lock!(held_is_seen_at_the_lock_server_under: redis, table);
under_each_lock!(lost_before_the_write_is_noticed_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(released_blindly_lets_a_third_one_in_under: redis, redlock, dynamodb, table);
under_each_lock!(released_by_its_owner_only_lets_nobody_in_under: redis, redlock, dynamodb, table, etcd);

/// What other tests rely on when they find no lock: with a holder, there is one. An attempt holds what it needs, no more.
async fn held_is_seen_at_the_lock_server_under(database: Database, lock: &str) {
    let world = World::shared(database).await;
    let room = world.room_with("held", json!({"lock": lock})).await;
    let ana = is_at_its_gate(&room, "Ana", "ana").await;
    let locks = world.locks_held(&room.name).await;
    assert_eq!(locks.len(), 1, "{locks:?}");
    let transfer = room.transfers("alice", "bob", "1.00").on(B);
    let transfer = transfer
        .pausing_at("after_read")
        .at_gate("transfer")
        .starts();
    room.one_waits_at_gate("transfer", B, "after_read").await;
    let locks = world.locks_held(&room.name).await;
    assert_eq!(locks.len(), 3, "one seat and two wallets: {locks:?}");

    room.opens("ana").await;
    room.opens("transfer").await;
    ana.answer().await.is("booked");
    transfer.answer().await.is("transferred");
    room.has_no_lease_left(PATIENCE).await;
    let locks = world.locks_held(&room.name).await;
    assert!(locks.is_empty(), "{locks:?}");
}

/// The first buyer has read; its lease lapses and the second one books. Its last look at the deadline sees that.
async fn lost_before_the_write_is_noticed_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let switches = json!({"lock": lock, "renew": false, "ttl_ms": 1000, "wait_ms": 20_000});
    let room = world.room_with("not-renewed", switches).await;

    let first = is_at_its_gate(&room, "Ana", "first").await;
    room.books("Ben", "A1").on(B).await.is("booked");
    first.is_not_answered();
    room.opens("first").await;
    first.answer().await.is("lease-lost");
    room.audit().await.is_clean_after(1);
}

/// The first one's release frees the lock of the second one, and the third one enters beside it.
async fn released_blindly_lets_a_third_one_in_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = unfenced(&world, lock, "blind").await;
    let [first, second, third] = three_buyers(&room).await;
    first.is("lease-lost");
    third.is("booked");
    second.is("booked");
    room.audit().await.sold_twice("A1", &["Ben", "Cem"]);
}

/// The same steps. The third one has to wait until the second one's lease is over, and then the second one has lost it.
async fn released_by_its_owner_only_lets_nobody_in_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = unfenced(&world, lock, "owner_checked").await;
    let [first, second, third] = three_buyers(&room).await;
    first.is("lease-lost");
    third.is("booked");
    second.is("lease-lost");
    room.audit().await.is_clean_after(1);
}

/// A lease long enough for a third buyer to come and go within it, on a noisy machine.
async fn unfenced(world: &World, lock: &str, release: &str) -> Room {
    let switches = json!({
        "lock": lock, "release": release, "fencing": "off", "renew": false,
        "ttl_ms": 4000, "wait_ms": 30_000,
    });
    world.room_with("release", switches).await
}

/// The first loses its lease to the second, ends and releases; then a third comes, and only when it has its answer the
/// second may go on.
async fn three_buyers(room: &Room) -> [Answer; 3] {
    let first = is_at_its_gate(room, "Ana", "first").await;
    let second = is_at_its_gate(&room.seen_from(B), "Ben", "second").await;
    room.opens("first").await;
    let first = first.answer().await;
    // The answer does not wait for the release; the audit knows when it was answered.
    let released = room.has_no_lease_left(PATIENCE).await;
    println!("the first one's release was answered after {released:.1?}");

    let third = room.books("Cem", "A1").on(A).await;
    println!("the third one waited {:.0} ms", third.timing("wait"));
    room.opens("second").await;
    [first, second.answer().await, third]
}

/// A buyer who has the lock and has read, on the replica from which the room is seen.
async fn is_at_its_gate(room: &Room, buyer: &str, gate: &str) -> Underway {
    let attempt = room.books(buyer, "A1");
    let attempt = attempt.pausing_at("after_read").at_gate(gate).starts();
    let waiting = room.waits_at_gate(gate, 1).await;
    assert_eq!(waiting[0].at, "after_read");
    attempt
}
