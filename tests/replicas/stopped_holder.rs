//! The whole process of a holder stands still, with SIGSTOP, and goes on when its lease is over and the seat is sold.
//!
//! `paused_holder` stages the same with a failpoint, where only the attempt and its renewal stand still. Here nothing
//! is staged but the moment: sockets, timers and keep-alives all stop, and nobody tells the lock system.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{A, Answer, B, Database, Room, World, soak};

under_each_lock!(sells_twice_unfenced_under: redis, redlock, dynamodb, table, zookeeper, etcd);
under_each_lock!(is_refused_by_the_fence_under: redis, redlock, dynamodb, table, zookeeper, etcd);

/// How often each is seen; `--soak` asks for more.
const RUNS: usize = 5;

async fn sells_twice_unfenced_under(database: Database, lock: &str) {
    let world = World::own(database).with(lock).start().await;
    for _ in 0..runs() {
        let room = room_fenced(&world, lock, "off").await;
        let [ana, ben] = ana_is_stopped_until_ben_has_booked(&world, &room).await;
        ben.is("booked");
        ana.is("booked");
        room.audit().await.sold_twice("A1", &["Ana", "Ben"]);
    }
}

/// Bug 37.
async fn is_refused_by_the_fence_under(database: Database, lock: &str) {
    let world = World::own(database).with(lock).start().await;
    for _ in 0..runs() {
        let room = room_fenced(&world, lock, "from_first_read").await;
        let [ana, ben] = ana_is_stopped_until_ben_has_booked(&world, &room).await;
        ben.is("booked");
        ana.is("stale-token");
        room.audit().await.is_clean_after(1);
    }
}

fn runs() -> usize {
    match soak() {
        1 => RUNS,
        _ => RUNS * 4,
    }
}

async fn room_fenced(world: &World, lock: &str, fencing: &str) -> Room {
    let switches = json!({"lock": lock, "fencing": fencing, "ttl_ms": 1000, "wait_ms": 20_000});
    let room = world.room_with("stopped-holder", switches).await;
    room.seen_from(B)
}

/// The answers of Ana and of Ben. Ana stands between her last look at her lease and her write when her replica stops.
async fn ana_is_stopped_until_ben_has_booked(world: &World, room: &Room) -> [Answer; 2] {
    let ana = room.books("Ana", "A1").on(A);
    let ana = ana.pausing_at("before_write").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "before_write").await;
    world.process(A).freezes().await;
    let ben = room.books("Ben", "A1").on(B).await;
    println!("Ben booked {:?} after Ana's replica stopped", ben.took);
    ana.is_not_answered();

    world.process(A).signal(Signal::SIGCONT);
    room.one_waits_at_gate("ana", A, "before_write").await;
    room.opens("ana").await;
    [ana.answer().await, ben]
}
