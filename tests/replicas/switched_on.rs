//! An attempt began without a lock. While it stands before its write, locking is switched on and somebody books under it.

use serde_json::json;

use crate::support::{A, Answer, B, Database, Room, World};

under_each_lock!(midway_sells_twice_unfenced_under: redis, table, row);
under_each_lock!(midway_is_seen_by_the_write_under: redis, table, row);
on_both_databases!(
    to_a_mutex_its_holders_read_is_seen_by_an_older_write,
    midway_the_next_attempt_begins_anew,
    a_change_that_changes_nothing_disturbs_nobody
);

async fn midway_sells_twice_unfenced_under(database: Database, lock: &str) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "lock": lock, "fencing": "off"});
    let room = world.room_with("switched-on", switches).await;
    let [ana, ben] = locking_is_switched_on_before_anas_write(&room).await;
    ben.is("booked");
    ana.is("booked");
    room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
}

async fn midway_is_seen_by_the_write_under(database: Database, lock: &str) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "lock": lock, "fencing": "from_first_read"});
    let room = world.room_with("switched-on", switches).await;
    let [ana, ben] = locking_is_switched_on_before_anas_write(&room).await;
    ben.is("booked");
    ana.is("switches-changed");
    room.audit().await.is_clean_after(1);
}

/// A mutex has no token, but its holder's read leaves the epoch: an attempt that began before cannot write between
/// the new holder's read and write.
async fn to_a_mutex_its_holders_read_is_seen_by_an_older_write(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("to-mutex", json!({"locking": false})).await;
    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    room.switches(json!({"locking": true, "lock": "mutex"}))
        .await;
    let ben = room.books("Ben", "A1").on(A);
    let ben = ben.pausing_at("after_read").at_gate("ben").starts();
    room.one_waits_at_gate("ben", A, "after_read").await;
    room.opens("ana").await;
    ana.answer().await.is("switches-changed");
    room.opens("ben").await;
    ben.answer().await.is("booked");
    room.audit().await.is_clean_after(1);
}

async fn locking_is_switched_on_before_anas_write(room: &Room) -> [Answer; 2] {
    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;

    let before = room.epoch().await;
    room.switches(json!({"locking": true})).await;
    assert!(
        room.epoch().await > before,
        "a real change raises the epoch"
    );
    let ben = room.books("Ben", "A1").on(B).await;
    ana.is_not_answered();
    room.opens("ana").await;
    [ana.answer().await, ben]
}

/// Ben waits for his lock when the lock system is changed: he goes on under the new one, within the same wait.
async fn midway_the_next_attempt_begins_anew(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"lock": "redis", "wait_ms": 20_000});
    let room = world.room_with("begins-anew", switches).await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("after_read").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "after_read").await;
    let ben = room.books("Ben", "A1").on(B);
    let ben = ben.pausing_at("after_read").at_gate("ben").starts();
    room.switches(json!({"lock": "table"})).await;
    room.opens("ana").await;
    // Under the new switches Ben holds the lock of the table, whether Ana's write came before his read or not.
    room.one_waits_at_gate("ben", B, "after_read").await;
    let ana = ana.answer().await;
    room.opens("ben").await;
    let ben = ben.answer().await;

    let mut outcomes = [ana.outcome(), ben.outcome()];
    outcomes.sort();
    let fine = [["booked", "seat-taken"], ["booked", "switches-changed"]];
    assert!(fine.iter().any(|pair| outcomes == *pair), "{outcomes:?}");
    room.audit().await.is_clean_after(1);
}

async fn a_change_that_changes_nothing_disturbs_nobody(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("no-change", json!({"think_ms": 1})).await;
    let before = room.epoch().await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    room.switches(json!({"think_ms": 1})).await;
    assert_eq!(room.epoch().await, before);
    room.opens("ana").await;
    ana.answer().await.is("booked");
}
