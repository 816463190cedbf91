//! Locking off is seen to go wrong, and every lock is not.

use crate::generator::{CROWD, Load};
use crate::support::{Database, World};

#[tokio::test]
async fn locking_off_sells_twice_and_its_goodput_tells() {
    let world = World::own(Database::Postgres).start().await;
    let flags = ["--side", "locking=off", "--threshold", "violations = 0"];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(1).left_no_room(&world).await;
    let findings = &ran.side("locking=off")["verdict"]["findings"];
    let count = |check: &str| findings[check]["count"].as_u64().unwrap_or(0);
    assert!(count("seat-acknowledged-twice") > 0, "{findings}");
    assert!(count("lost-update") > 0, "{findings}");
    let goodput = ran.figure("locking=off", "goodput");
    let throughput = ran.figure("locking=off", "throughput");
    assert!(goodput < throughput, "{goodput} {throughput}");
}

/// Every lock system that is there, in turns, with locking off as the control.
#[tokio::test]
async fn every_lock_that_is_there_sells_once_and_all_that_it_does_is_good() {
    let world = World::own(Database::Postgres).start().await;
    let ran = Load::on(&world, &[&CROWD[..], &["--all-locks"]].concat())
        .ends()
        .await;
    ran.exits_with(0).left_no_room(&world).await;
    assert_eq!(
        ran.side("locking=off")["outcome"],
        "violated",
        "the control"
    );
    let labels: Vec<_> = ran.labels().collect();
    for lock in ["redis", "table", "row"] {
        assert!(labels.contains(&format!("lock={lock}")), "{labels:?}");
    }
    for label in labels {
        // It does not exclude the other replica at all.
        if label == "locking=off" || label == "lock=mutex" {
            continue;
        }
        assert_eq!(
            ran.side(&label)["outcome"],
            "none-seen",
            "{label}: {}",
            ran.table
        );
        let (goodput, throughput) = (
            ran.figure(&label, "goodput"),
            ran.figure(&label, "throughput"),
        );
        assert_eq!(goodput, throughput, "{label}");
        assert!(throughput > 0.0, "{label}");
    }
}

/// The sides of the issue, at the same time, each judged by a threshold of its own.
#[tokio::test]
async fn two_sides_are_judged_apart() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = [
        "--side",
        "lock=table",
        "--side",
        "locking=off",
        "--threshold",
        "lock=table: violations = 0",
        "--threshold",
        "locking=off: violations > 0",
        "--threshold",
        "p99 < 60m",
    ];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(0).left_no_room(&world).await;
    let off = &ran.side("locking=off")["differences"]["goodput"];
    assert_eq!(off["verdict"], "one-run", "{off}");
    assert_eq!(ran.report["thresholds"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn two_replicas_can_be_the_sides() {
    let world = World::own(Database::Sqlite).start().await;
    let [a, b] = [crate::support::A, crate::support::B]
        .map(|replica| format!("target={}", world.url(replica)));
    let flags = ["--side", &a, "--side", &b];
    let ran = Load::at(&[], &[&CROWD[..], &flags].concat()).ends().await;
    ran.exits_with(0).left_no_room(&world).await;
    let asked = [crate::support::A, crate::support::B].map(|replica| world.url(replica));
    assert_eq!(
        ran.report["asked"]["targets"],
        serde_json::json!(asked),
        "and not the one that is asked by default"
    );
    assert!(!ran.log.contains("WARN"), "{}", ran.log);
    for (label, other) in [(&a, &b), (&b, &a)] {
        let [target, other] = [label, other].map(|label| label.trim_start_matches("target="));
        let events: Vec<_> = ran.events(label).collect();
        assert!(
            events.iter().any(|event| event["target"] == target),
            "{label}"
        );
        assert!(
            !events.iter().any(|event| event["target"] == other),
            "{label}"
        );
    }
}
