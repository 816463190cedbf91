//! Tokens and epochs refuse who is late. They must never refuse a live holder for ever, whatever became of the rows, the
//! room, the replicas or the counters of a lock server.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{A, B, Database, PATIENCE, Room, Up, World};

under_each_lock!(nobody_is_after_a_reset_under: redis, table, row);
under_each_lock!(nobody_is_after_the_room_is_replaced_under: redis, table, row);
under_each_lock!(nobody_is_after_the_room_is_made_anew_under: redis, table, row);
under_each_lock!(nobody_is_after_the_replicas_start_again_under: redis, table, row);
under_each_lock!(nobody_is_when_the_rows_have_seen_higher_tokens_under: redis, redlock, dynamodb, table, zookeeper, etcd);
on_both_databases!(
    nobody_is_when_each_lock_has_its_turn,
    nobody_is_after_redis_forgets_everything,
    redis_forgets_a_holder_and_the_fence_does_not,
    an_attempt_under_way_does_not_write_into_a_room_that_was_reset,
    an_attempt_under_way_does_not_write_into_a_room_that_was_made_anew,
);

async fn nobody_is_after_a_reset_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = world.room_with("reset", json!({"lock": lock})).await;
    for _ in 0..3 {
        everybody_is_served(&room).await;
        let before = room.epoch().await;
        let reset = room.resets().await;
        assert!(reset["epoch"].as_i64() > Some(before), "{reset}");
        assert!(all_free(&reset), "{reset}");
        assert_eq!(reset["audit"]["attempts"], 0, "{reset}");
    }
    everybody_is_served(&room).await;
}

async fn nobody_is_after_the_room_is_replaced_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = world.room_with("replaced", json!({"lock": lock})).await;
    for _ in 0..3 {
        everybody_is_served(&room).await;
        let before = room.epoch().await;
        let replaced = room.is_made(json!({"rows": 4, "columns": 4})).await;
        assert_eq!(replaced.status, 200, "{replaced:?}");
        assert!(room.epoch().await > before);
        room.switches(json!({"lock": lock})).await;
    }
    everybody_is_served(&room).await;
}

async fn nobody_is_after_the_room_is_made_anew_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let room = world.room_with("anew", json!({"lock": lock})).await;
    for _ in 0..3 {
        everybody_is_served(&room).await;
        let before = room.epoch().await;
        let gone = room.asks(Method::DELETE, "", None).await;
        assert_eq!(gone.status, 204, "{gone:?}");
        room.asks(Method::GET, "", None).await.is("not-found");
        room.books("Ana", "A1").await.is("not-found");
        assert_eq!(room.is_made(json!({})).await.status, 201);
        assert!(room.epoch().await > before, "epochs never start again");
        room.switches(json!({"lock": lock})).await;
    }
    everybody_is_served(&room).await;
}

async fn nobody_is_after_the_replicas_start_again_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let room = world.room_with("restart", json!({"lock": lock})).await;
    everybody_is_served(&room).await;
    for replica in [A, B] {
        world.kills(replica);
        world.starts(replica).await;
    }
    room.resets().await;
    everybody_is_served(&room).await;
}

/// As when a lock server lost its counter and gives smaller tokens than before: the epoch rises and the attempt goes on.
async fn nobody_is_when_the_rows_have_seen_higher_tokens_under(database: Database, lock: &str) {
    let world = World::own(database).with(lock).start().await;
    for fencing in ["from_first_read", "on_write"] {
        let switches = json!({"lock": lock, "fencing": fencing, "wait_ms": 20_000});
        let room = world.room_with("smaller-tokens", switches).await;
        room.books("Zoe", "E8").await.is("booked");
        let before = room.epoch().await;

        // Far above any clock in microseconds, and far below the end of the numbers.
        let stamp = format!("SET fence_epoch = {before}, fence = 1000000000000000000");
        assert!(world.changes(&format!("UPDATE seat {stamp}")).await > 0);
        assert!(world.changes(&format!("UPDATE wallet {stamp}")).await > 0);

        everybody_is_served(&room).await;
        assert!(room.epoch().await > before, "the room's epoch was raised");
    }
}

/// Each lock counts on its own; a room that changes from one to another starts a new epoch.
async fn nobody_is_when_each_lock_has_its_turn(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("turns").await;
    let turns = [
        "table", "redis", "row", "mutex", "redis", "table", "row", "redis",
    ];
    for (turn, lock) in turns.into_iter().enumerate() {
        room.switches(json!({"lock": lock})).await;
        let seat = format!("A{}", turn + 1);
        room.books("Ana", &seat).on(A).await.is("booked");
        room.books("Ben", &seat).on(B).await.is("seat-taken");
        room.transfers("alice", "bob", "1.00")
            .on(B)
            .await
            .is("transferred");
        room.transfers("bob", "alice", "1.00")
            .on(A)
            .await
            .is("transferred");
    }
    room.audit().await.is_clean_after(24);
}

async fn nobody_is_after_redis_forgets_everything(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room_with("flushed", json!({"lock": "redis"})).await;
    for round in 0..3 {
        everybody_is_served(&room).await;
        let before = room.books("Zoe", "D1").await;
        before.is("booked");
        world.redis_forgets_everything().await;
        // Without a reset in between: the wallets' rows have seen the tokens from before.
        room.transfers("alice", "bob", "1.00")
            .on(A)
            .await
            .is("transferred");
        room.transfers("bob", "alice", "1.00")
            .on(B)
            .await
            .is("transferred");
        let after = room.books("Zoe", "D2").await;
        after.is("booked");
        println!(
            "round {round}: token {} before and {} after",
            before.json()["token"],
            after.json()["token"]
        );
        assert!(room.audit().await.clean);
        room.resets().await;
    }
}

/// Redis forgets who holds; Ben enters beside Ana; only one of them may write.
async fn redis_forgets_a_holder_and_the_fence_does_not(database: Database) {
    let world = World::own(database).start().await;
    let switches = json!({"lock": "redis", "ttl_ms": 60_000});
    let room = world.room_with("flushed", switches).await;

    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    let locks = world.locks_held(&room.name).await;
    assert_eq!(locks.len(), 1, "one lock of this room in Redis: {locks:?}");
    world.redis_forgets_everything().await;
    room.books("Ben", "A1").on(B).await.is("booked");
    room.opens("ana").await;
    ana.answer().await.is("stale-token");
    room.audit().await.is_clean_after(1);
}

async fn an_attempt_under_way_does_not_write_into_a_room_that_was_reset(database: Database) {
    let world = World::shared(database).await;
    for lock in ["redis", "table"] {
        let room = world.room_with("reset", json!({"lock": lock})).await;
        let ana = room.books("Ana", "A1").on(A);
        let ana = ana.pausing_at("before_write").at_gate("ana").starts();
        room.one_waits_at_gate("ana", A, "before_write").await;
        room.resets().await;
        room.opens("ana").await;
        ana.answer().await.is("switches-changed");
        room.audit().await.is_clean_after(0);
        room.books("Ben", "A1").on(B).await.is("booked");
    }
}

async fn an_attempt_under_way_does_not_write_into_a_room_that_was_made_anew(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("anew", json!({"lock": "table"})).await;
    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    assert_eq!(room.asks(Method::DELETE, "", None).await.status, 204);
    assert_eq!(room.is_made(json!({})).await.status, 201);
    room.opens("ana").await;
    let answer = ana.answer().await;
    let word = answer.outcome();
    // The row that was read is gone; one of the same name stands in its place.
    assert!(
        ["not-found", "switches-changed"].contains(&word.as_str()),
        "{answer:?}"
    );
    room.audit().await.is_clean_after(0);
    room.books("Ben", "A1").on(B).await.is("booked");
}

/// The private Redis of `up` begins its counters anew with each start, on old data.
#[tokio::test]
async fn nobody_is_after_up_starts_again_on_old_data() {
    let up = Up::with_servers("redis", "sqlite");
    for start in 1..=3 {
        up.starts().await;
        let before = up.get("/rooms/main").await;
        for replica in [0, 1] {
            let seat = format!("{}{start}", ["A", "B"][usize::from(replica)]);
            up.books(replica, "Ana", &seat).await.is("booked");
            up.books(1 - replica, "Ben", &seat).await.is("seat-taken");
        }
        let after = up.get("/rooms/main").await;
        assert_eq!(
            after["epoch"], before["epoch"],
            "no live holder was refused"
        );
        assert_eq!(after["audit"]["attempts"], 2 * start, "{after}");

        let below = up.descendants();
        if start == 1 {
            up.process().signal(Signal::SIGTERM);
            let (status, _) = up.process().ends(PATIENCE).await;
            assert_eq!(status.code(), Some(0), "{}", up.process().tail());
        } else {
            up.process().kill();
        }
        up.leaves_nothing_of(&below, PATIENCE).await;
    }
}

/// Bookings and transfers over both replicas, on rows that were used before: all succeed at their first try.
async fn everybody_is_served(room: &Room) {
    for (number, replica) in [A, B, A, B].into_iter().enumerate() {
        let seat = format!("A{}", number + 1);
        let answer = room.books("Ana", &seat).on(replica).await;
        assert_eq!(answer.outcome(), "booked", "{answer:?}");
        let answer = room.transfers("alice", "bob", "1.00").on(replica).await;
        assert_eq!(answer.outcome(), "transferred", "{answer:?}");
        let answer = room.transfers("bob", "alice", "1.00").on(replica).await;
        assert_eq!(answer.outcome(), "transferred", "{answer:?}");
    }
    let audit = room.audit().await;
    assert!(audit.clean, "{audit:?}");
}

fn all_free(room: &Value) -> bool {
    let seats = room["seats"].as_array().expect("a list");
    seats
        .iter()
        .all(|seat| seat["state"] == "free" && seat["buyer"].is_null())
}
