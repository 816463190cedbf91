//! Replicas that are silent, killed, stopped.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::stream::{Stream, alive, of_replica, of_seat, path, since};
use crate::support::{A, B, Database, PATIENCE, Room, World, promised};

on_both_databases!(
    a_replica_that_stands_still_is_silent_and_delays_nobody,
    a_replica_that_was_killed_is_gone_until_it_is_back,
    a_stop_ends_all_streams_at_once,
    a_replica_that_is_alone_says_so_and_knows_its_leases,
);

async fn a_replica_that_is_alone_says_so_and_knows_its_leases(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("alone").await;
    // It signs off.
    world.terminates(B);
    world.process(B).ends(PATIENCE).await;
    let stream = Stream::of(&world, A, &room.name).await;
    stream
        .first("replicas", |data| {
            data["replicas"].as_array().map(Vec::len) == Some(1)
        })
        .await;
    stream
        .first("audit", |audit| audit["leases_left"] == 0)
        .await;
}

const SHOWN: Duration = Duration::from_millis(1500);
const SEEN: Duration = Duration::from_secs(1);

async fn a_replica_that_stands_still_is_silent_and_delays_nobody(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("silent").await;
    let stream = Stream::settled(&world, A, &room.name).await;

    let start = Instant::now();
    world.process(B).signal(Signal::SIGSTOP);
    sees_booking(&stream, &room, "A1").await;
    let silent = |data: &Value| of_replica(data, "B")["silent"] == true;
    let event = stream.first("replicas", silent).await;
    promised("B is shown as silent", SHOWN, since(start, &event));
    assert_eq!(of_replica(&event.data, "B")["alive"], false);
    sees_booking(&stream, &room, "A2").await;
    // Who comes now hears it with the first word.
    let second = Stream::of(&world, A, &room.name).await;
    second.first("replicas", silent).await;
    // Nobody knows whether it holds leases.
    stream
        .first("audit", |audit| {
            audit["attempts"] == 2 && audit["leases_left"].is_null()
        })
        .await;

    let (before, start) = (stream.events().len(), Instant::now());
    world.process(B).signal(Signal::SIGCONT);
    let event = stream
        .first_after(before, "replicas", |data| alive(data) == 2)
        .await;
    promised("B is shown as alive again", SHOWN, since(start, &event));
}

async fn a_replica_that_was_killed_is_gone_until_it_is_back(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("killed").await;
    let stream = Stream::settled(&world, A, &room.name).await;

    let start = Instant::now();
    world.kills(B);
    let gone = |data: &Value| {
        let b = of_replica(data, "B");
        b["alive"] == false && b["silent"] == false
    };
    let event = stream.first("replicas", gone).await;
    promised("B is shown as gone", SHOWN, since(start, &event));
    sees_booking(&stream, &room, "A1").await;

    let before = stream.events().len();
    world.starts(B).await;
    let start = Instant::now();
    let event = stream
        .first_after(before, "replicas", |data| alive(data) == 2)
        .await;
    promised("B is shown as alive again", SHOWN, since(start, &event));
    room.books("Ben", "A2").on(B).await.is("booked");
    stream.first("step", |step| step["replica"] == "B").await;
}

async fn sees_booking(stream: &Stream, room: &Room, seat: &str) {
    room.books("Ana", seat).on(A).await.is("booked");
    let start = Instant::now();
    let sold = |data: &Value| of_seat(data, seat)["state"] == "sold";
    let event = stream.first("seats", sold).await;
    promised("a booking is seen", SEEN, since(start, &event));
    stream
        .first("step", |step| step["kind"] == "committed")
        .await;
}

/// Ten streams: five of a room in which something is under way, five of a quiet one.
async fn a_stop_ends_all_streams_at_once(database: Database) {
    let world = World::own(database).start().await;
    let (busy, quiet) = (world.room("busy").await, world.room("quiet").await);
    let mut streams = Vec::new();
    for _ in 0..5 {
        for room in [&busy, &quiet] {
            streams.push(Stream::settled(&world, A, &room.name).await);
        }
    }
    let other = Stream::settled(&world, B, &busy.name).await;
    let holder = busy
        .books("Ana", "A1")
        .on(A)
        .pausing_at("after_read")
        .at_gate("stop")
        .for_ms(1000)
        .starts();
    busy.seen_from(B)
        .one_waits_at_gate("stop", A, "after_read")
        .await;

    let start = Instant::now();
    world.terminates(A);
    for stream in &streams {
        let end = stream.end().await;
        promised(
            "a stream has ended",
            SEEN,
            end.saturating_duration_since(start),
        );
        stream.says(": come back").await;
    }
    // The page goes to another replica, whose stream tells how what was under way on this one ends.
    holder.answer().await.is("booked");
    other
        .first("seats", |data| {
            of_seat(data, "A1")["buyers"] == json!(["Ana"])
        })
        .await;
    let committed = |step: &Value| step["replica"] == "A" && step["kind"] == "committed";
    other.first("step", committed).await;
    let (status, took) = world.process(A).ends(Duration::from_secs(15)).await;
    promised("the end of the replica", Duration::from_secs(5), took);
    assert_eq!(status.code(), Some(0), "{}", world.process(A).tail());
    // It signed off: it is no longer among the replicas.
    other
        .first("replicas", |data| of_replica(data, "A").is_null())
        .await;
    assert_eq!(world.get(B, &path("no-such-room")).await.status, 404);
}
