//! The wall clocks of the two replicas are wrong by an hour each, in different directions, or are set while a lock is
//! held. No machine's clock decides about a lock: a client's deadlines are on its monotonic clock, and a lease ends by the
//! clock of the lock system.
//!
//! libfaketime fakes the clocks, in the replicas alone. SQLite takes the time from the process that uses it, which is the
//! one clock of the one host there; so `table` stands this test on PostgreSQL only.

use std::time::Duration;

use serde_json::json;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::support::{A, Answer, B, Database, Replica, World, eventually};

on_both_databases!(
    that_are_wrong_let_one_buyer_in_and_lock_nobody_out,
    that_jump_end_no_lease_and_keep_none,
);

const HOUR: i64 = 3600;

/// Bug 28.
async fn that_are_wrong_let_one_buyer_in_and_lock_nobody_out(database: Database) {
    let world = World::own(database).with("etcd");
    let world = world.with_clocks([HOUR, -HOUR]).start().await;
    shows_the_time(&world, A, HOUR).await;
    shows_the_time(&world, B, -HOUR).await;
    for lock in locks(database) {
        let switches = json!({"lock": lock, "think_ms": 20, "ttl_ms": 20_000, "wait_ms": 30_000});
        let room = world.room_with("wrong-clocks", switches).await;
        for seat in ["A1", "A2", "A3", "A4"] {
            let ana = room.books("Ana", seat).on(A).starts();
            let ben = room.books("Ben", seat).on(B).starts();
            let answers = [ana.answer().await, ben.answer().await];
            let mut outcomes = answers.each_ref().map(Answer::outcome);
            outcomes.sort();
            assert_eq!(
                outcomes,
                ["booked", "seat-taken"],
                "seat {seat} under {lock}: {answers:?}"
            );
        }
        room.audit().await.is_clean_after(4);
    }
}

/// Bug 28: forward, a lease that is renewed is not over; backward, one that is not renewed does not last.
async fn that_jump_end_no_lease_and_keep_none(database: Database) {
    let world = World::own(database).with("etcd");
    let world = world.with_clocks([0, 0]).start().await;
    for lock in locks(database) {
        let switches = json!({"lock": lock, "ttl_ms": 5000, "wait_ms": 7000});
        let room = world.room_with("jumps", switches).await;
        let ana = room.books("Ana", "A1").on(A);
        let ana = ana.pausing_at("after_read").at_gate("ana").starts();
        room.one_waits_at_gate("ana", A, "after_read").await;
        world.sets_clock(A, HOUR);
        let ben = room.books("Ben", "A1").on(B).await;
        assert_eq!(ben.outcome(), "lock-timeout", "under {lock}: {ben:?}");
        room.opens("ana").await;
        let ana = ana.answer().await;
        assert_eq!(ana.outcome(), "booked", "under {lock}: {ana:?}");
        world.sets_clock(A, 0);
    }
    for lock in locks(database).filter(|&lock| lock != "row") {
        let switches = json!({"lock": lock, "ttl_ms": 2000, "renew": false, "wait_ms": 20_000});
        let room = world.room_with("jumps", switches).await;
        let ana = room.books("Ana", "A1").on(A);
        let ana = ana.pausing_at("after_read").at_gate("ana").starts();
        room.one_waits_at_gate("ana", A, "after_read").await;
        world.sets_clock(A, -HOUR);
        let ben = room.books("Ben", "A1").on(B).await;
        assert_eq!(ben.outcome(), "booked", "under {lock}: {ben:?}");
        room.opens("ana").await;
        let ana = ana.answer().await;
        assert_eq!(ana.outcome(), "lease-lost", "under {lock}: {ana:?}");
        room.audit().await.is_clean_after(1);
        world.sets_clock(A, 0);
    }
}

fn locks(database: Database) -> impl Iterator<Item = &'static str> {
    let everywhere = ["redis", "redlock", "dynamodb", "row", "zookeeper", "etcd"];
    let table = (database == Database::Postgres).then_some("table");
    everywhere.into_iter().chain(table)
}

/// Or this test would show nothing.
async fn shows_the_time(world: &World, replica: Replica, seconds: i64) {
    let offset = time::Duration::seconds(seconds);
    let minute = || {
        let format = format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]"
        );
        let then = OffsetDateTime::now_utc() + offset;
        then.format(&format).expect("a time")
    };
    // It is looked at once a second.
    let patience = Duration::from_secs(10);
    eventually("its clock in its answers", patience, async || {
        let before = minute();
        let answer = world.get(replica, "/healthz").await;
        let date = answer.header("date");
        match date.starts_with(&before) || date.starts_with(&minute()) {
            true => Ok(()),
            false => Err(format!(
                "{date}, and not {before} (libfaketime: Debian's faketime)"
            )),
        }
    })
    .await;
}
