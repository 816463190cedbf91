//! A run that is stopped ends with a report of what there is, and removes its rooms.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::generator::Load;
use crate::support::{A, Database, PATIENCE, World, eventually, promised};

/// A run that loses a replica on its way.
const SHORT: [&str; 8] = [
    "--side",
    "lock=table",
    "--rate",
    "30",
    "--duration",
    "4s",
    "--think",
    "20ms",
];

#[tokio::test]
async fn ctrl_c_ends_a_run_with_a_report_and_leaves_no_room() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = [
        "--side",
        "lock=table",
        "--side",
        "locking=off",
        "--rate",
        "30",
        "--duration",
        "10m",
        "--think",
        "20ms",
        "--repeat",
        "5",
    ];
    let running = Load::on(&world, &flags).starts();
    running.has_made(&world, A, 20).await;
    running.signal(Signal::SIGINT);
    let ran = running.ends().await;
    ran.exits_with(0).left_no_room(&world).await;
    assert_eq!(ran.report["interrupted"], true);
    assert!(ran.page.contains("stopped before its end"), "{}", ran.page);
    assert!(ran.side("lock=table")["verdict"]["acknowledged"].as_u64() > Some(0));
    assert_eq!(
        ran.side("lock=table")["verdict"]["undecided"],
        serde_json::json!([]),
        "nothing was cut off"
    );
}

#[tokio::test]
async fn a_replica_that_dies_during_a_run_leaves_no_room_and_accuses_nobody() {
    let world = World::own(Database::Postgres).start().await;
    let timeout = ["--timeout", "5s"];
    let running = Load::on(&world, &[&SHORT[..], &timeout].concat()).starts();
    running.has_made(&world, A, 20).await;
    world.kills(crate::support::B);
    let ran = running.ends().await;
    ran.exits_with(0).left_no_room(&world).await;
    let side = ran.side("lock=table");
    assert!(ran.figure("lock=table", "failures") > 0.0, "{side}");
    assert_eq!(
        side["verdict"]["findings"],
        serde_json::json!({}),
        "{}",
        ran.table
    );
}

/// The first of its targets, at that: what is read at the end is asked of the other one.
#[tokio::test]
async fn a_replica_that_freezes_during_a_run_leaves_no_room_and_nothing_open() {
    let world = World::own(Database::Postgres).start().await;
    let timeout = ["--timeout", "1s"];
    let running = Load::on(&world, &[&SHORT[..], &timeout].concat()).starts();
    running.has_made(&world, A, 20).await;
    freezes_between_transactions(&world).await;
    let began = Instant::now();
    let ran = running.ends().await;
    let took = began.elapsed();
    world.process(A).signal(Signal::SIGCONT);
    ran.exits_with(0).left_no_room(&world).await;
    assert!(ran.figure("lock=table", "failures") > 0.0, "{}", ran.table);
    let verdict = &ran.side("lock=table")["verdict"];
    assert_eq!(verdict["findings"], serde_json::json!({}), "{verdict}");
    assert_eq!(verdict["undecided"], serde_json::json!([]), "{verdict}");
    promised("the end", Duration::from_secs(20), took);
}

/// An open transaction would hold its rows for as long as the replica stands still, and with them the room.
async fn freezes_between_transactions(world: &World) {
    eventually("a moment without a transaction", PATIENCE, async || {
        world.process(A).freezes().await;
        // Those of the other replica come and go.
        for _ in 0..20 {
            if !world.has_open_transactions().await {
                return Ok(());
            }
        }
        world.process(A).signal(Signal::SIGCONT);
        Err("it is in a transaction".to_owned())
    })
    .await;
}
