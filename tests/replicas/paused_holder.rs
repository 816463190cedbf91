//! Ana holds the lock and sleeps before her write, as in a long garbage collection, and her renewal sleeps with her.
//! Her lease lapses, Ben gets the lock, and then she wakes up and writes.

use serde_json::json;

use crate::support::{A, Answer, B, Database, Room, Underway, World};

under_each_lock!(sells_twice_unfenced_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(is_refused_by_the_fence_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(is_refused_on_write_after_the_next_holders_write_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(gets_in_first_when_fenced_on_write_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(is_refused_before_the_next_holders_write_when_he_has_read_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(loses_a_deposit_unfenced_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(is_refused_when_only_its_second_wallet_is_stale_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(goes_on_when_only_the_task_sleeps_under: redis, redlock, dynamodb, table, zookeeper, etcd);

async fn sells_twice_unfenced_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "off").await;
    let [ana, ben] = ana_writes_after_ben(&room).await;
    ben.is("booked");
    ana.is("booked");
    room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
}

async fn is_refused_by_the_fence_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "from_first_read").await;
    let [ana, ben] = ana_writes_after_ben(&room).await;
    ben.is("booked");
    ana.is("stale-token");
    room.audit().await.is_clean_after(1);
}

/// This is what the fence of the textbooks is good for.
async fn is_refused_on_write_after_the_next_holders_write_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "on_write").await;
    let [ana, ben] = ana_writes_after_ben(&room).await;
    ben.is("booked");
    ana.is("stale-token");
    room.audit().await.is_clean_after(1);
}

/// And this is what it is not good for: between Ben's read and his write, Ana's token is still the highest one seen.
async fn gets_in_first_when_fenced_on_write_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "on_write").await;
    let [ana, ben] = ana_writes_between_bens_read_and_write(&room).await;
    ana.is("booked");
    ben.is("booked");
    room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
}

/// Bug 50: with tokens claimed from the first read, hers is no longer the highest one.
async fn is_refused_before_the_next_holders_write_when_he_has_read_under(
    database: Database,
    lock: &str,
) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "from_first_read").await;
    let [ana, ben] = ana_writes_between_bens_read_and_write(&room).await;
    ana.is("stale-token");
    ben.is("booked");
    room.audit().await.is_clean_after(1);
}

/// Alice → bob sleeps, carol → bob goes through, and the late write puts bob's old balance back.
async fn loses_a_deposit_unfenced_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "off").await;
    let [late, deposit] = a_deposit_overtakes_a_transfer(&room).await;
    deposit.is("transferred");
    late.is("transferred");
    assert_eq!(room.balance("bob").await, "180.00");
    let audit = room.audit().await;
    audit.only_wrong("bob", "180.00", "190.00");
    assert_eq!(audit.money.difference, "-10.00", "{audit:?}");
}

/// Nobody touched alice meanwhile. Bob's token alone refuses the whole transfer.
async fn is_refused_when_only_its_second_wallet_is_stale_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "from_first_read").await;
    let [late, deposit] = a_deposit_overtakes_a_transfer(&room).await;
    deposit.is("transferred");
    late.is("stale-token");
    assert_eq!(room.balance("alice").await, "100.00");
    assert_eq!(room.balance("bob").await, "110.00");
    room.audit().await.is_clean_after(1);
}

/// The other half of the pair: the task sleeps for longer than the lease, but the renewal goes on, so Ben has to wait.
async fn goes_on_when_only_the_task_sleeps_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = room_fenced(&world, lock, "off").await;
    room.switches(json!({"ttl_ms": 5000, "wait_ms": 6000}))
        .await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    room.books("Ben", "A1").on(B).await.is("lock-timeout");
    room.one_waits_at_gate("ana", A, "before_write").await;
    room.opens("ana").await;

    ana.answer().await.is("booked");
    room.audit().await.is_clean_after(1);
}

async fn room_fenced(world: &World, lock: &str, fencing: &str) -> Room {
    let switches = json!({"lock": lock, "fencing": fencing, "ttl_ms": 1000, "wait_ms": 20_000});
    world.room_with("paused-holder", switches).await
}

/// Ana sleeps before her write; gives her attempt.
async fn ana_falls_asleep(room: &Room) -> Underway {
    let ana = room.books("Ana", "A1").on(A);
    let ana = ana
        .pausing_at("before_write")
        .at_gate("ana")
        .frozen()
        .starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    ana
}

/// The answers of Ana and of Ben, who has booked before she wakes up.
async fn ana_writes_after_ben(room: &Room) -> [Answer; 2] {
    let ana = ana_falls_asleep(room).await;
    let ben = room.books("Ben", "A1").on(B).await;
    ana.is_not_answered();
    room.opens("ana").await;
    [ana.answer().await, ben]
}

/// The answers of Ana and of Ben, who has read and not yet written when she wakes up.
async fn ana_writes_between_bens_read_and_write(room: &Room) -> [Answer; 2] {
    let ana = ana_falls_asleep(room).await;
    let ben = room.books("Ben", "A1").on(B);
    let ben = ben.pausing_at("after_read").at_gate("ben").starts();
    room.one_waits_at_gate("ben", B, "after_read").await;
    ana.is_not_answered();

    room.opens("ana").await;
    let ana = ana.answer().await;
    room.one_waits_at_gate("ben", B, "after_read").await;
    room.opens("ben").await;
    [ana, ben.answer().await]
}

/// The answers of alice → bob 80, which sleeps before its write, and of carol → bob 10, which goes through meanwhile.
async fn a_deposit_overtakes_a_transfer(room: &Room) -> [Answer; 2] {
    let late = room.transfers("alice", "bob", "80.00").on(A);
    let late = late
        .pausing_at("before_write")
        .at_gate("late")
        .frozen()
        .starts();
    room.one_waits_at_gate("late", A, "before_write").await;
    let deposit = room.transfers("carol", "bob", "10.00").on(B).await;
    late.is_not_answered();
    room.opens("late").await;
    [late.answer().await, deposit]
}
