//! A replica that stands still for a second: everybody who would have come meanwhile waits, and an open model counts
//! them. Clients that wait for their answers do not come, and hide it.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::generator::{Load, Loaded};
use crate::support::{A, B, Database, World};

const STANDSTILL: Duration = Duration::from_secs(1);

/// Nobody meets anybody, and nothing waits but for the replica.
const COLD: [&str; 10] = [
    "--workload",
    "seats",
    "--hot",
    "0",
    "--side",
    "lock=table",
    "--warm-up",
    "0s",
    "--timeout",
    "30s",
];

#[tokio::test]
async fn a_standstill_shows_in_the_p99_of_an_open_model_and_not_of_a_closed_one() {
    let world = World::own(Database::Postgres).start().await;
    let open = run(&world, &["--rate", "40", "--duration", "6s"]).await;
    let closed = run(&world, &["--clients", "2", "--duration", "12s"]).await;
    let p99 = |ran: &Loaded| ran.figure("lock=table", "p99");
    println!(
        "p99 with a standstill of 1 s: open {:.0} ms, closed {:.0} ms",
        p99(&open),
        p99(&closed)
    );
    // A quarter of a second of it at least, for every second who came: far more than one in a hundred.
    assert!(p99(&open) > 750.0, "{}", open.table);
    assert!(open.figure("lock=table", "max") > 900.0, "{}", open.table);
    // It happened to the clients as well: the longest answer says so, and the percentile does not.
    assert!(
        closed.figure("lock=table", "max") > 900.0,
        "{}",
        closed.table
    );
    assert!(p99(&closed) < p99(&open), "{}{}", open.table, closed.table);
}

/// A run in the middle of which replica B stands still.
async fn run(world: &World, flags: &[&str]) -> Loaded {
    let running = Load::on(world, &[&COLD[..], flags].concat()).starts();
    running.has_made(world, A, 20).await;
    world.process(B).freezes().await;
    // The fault itself, and no waiting for anything.
    tokio::time::sleep(STANDSTILL).await;
    world.process(B).signal(Signal::SIGCONT);
    running.ends().await
}
