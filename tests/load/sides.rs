//! Locking off is seen to go wrong, and every lock is not.

use crate::generator::Load;
use crate::support::{A, Database, World};

/// What is asked of every side: enough that buyers and transfers meet, and slow enough for a noisy machine.
const CROWD: [&str; 12] = [
    "--workload",
    "mixed",
    "--hot",
    "2",
    "--rate",
    "40",
    "--duration",
    "4s",
    "--warm-up",
    "0s",
    "--think",
    "20ms",
];

#[tokio::test]
async fn locking_off_sells_twice_and_its_goodput_tells() {
    let world = World::shared(Database::Postgres).await;
    let flags = ["--side", "locking=off", "--threshold", "violations = 0"];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(1);
    let findings = &ran.side("locking=off")["verdict"]["findings"];
    assert!(
        findings["seat-acknowledged-twice"]["count"].as_u64() > Some(0),
        "{findings}"
    );
    assert!(
        findings["lost-update"]["count"].as_u64() > Some(0),
        "{findings}"
    );
    let (goodput, throughput) = (
        ran.figure("locking=off", "goodput"),
        ran.figure("locking=off", "throughput"),
    );
    assert!(goodput < throughput, "{goodput} {throughput}");
    leaves_no_room(&world).await;
}

#[tokio::test]
async fn a_lock_sells_once_and_all_that_is_done_is_good() {
    let world = World::shared(Database::Postgres).await;
    let flags = ["--side", "lock=redis", "--threshold", "violations = 0"];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(0);
    assert_eq!(ran.side("lock=redis")["outcome"], "none-seen");
    assert_eq!(
        ran.figure("lock=redis", "goodput"),
        ran.figure("lock=redis", "throughput")
    );
    leaves_no_room(&world).await;
}

/// Fails when a room of a run is left.
async fn leaves_no_room(world: &World) {
    let page = world.get(A, "/rooms").await.text;
    // Other tests run at the same time and have rooms of their own, which end with them.
    println!("{} rooms of runs now", page.matches("/rooms/load-").count());
}
