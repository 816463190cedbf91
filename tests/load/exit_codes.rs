//! What cannot be asked for, and how a run exits.

use crate::generator::{CROWD, Load};
use crate::support::{A, Database, Scratch, World, free_ports};

#[tokio::test]
async fn a_wrong_setting_is_told_in_one_line_that_names_it() {
    let world = World::shared(Database::Sqlite).await;
    for (flags, told) in [
        (&["--rate", "fast"][..], "--rate"),
        (&["--rate", "0"], "--rate"),
        (&["--clients", "0"], "--clients"),
        (&["--rate", "5", "--clients", "5"], "--clients"),
        (&["--duration", "10"], "--duration"),
        (&["--duration", "0s"], "--duration"),
        (&["--side", "redis"], "--side"),
        (&["--side", "lock=redis", "--side", "lock=redis"], "--side"),
        (&["--side", "loking=off"], "loking"),
        (&["--side", "lock=none"], "lock"),
        (&["--side", "ttl_ms=1"], "ttl_ms"),
        (&["--threshold", "p98 < 1s"], "--threshold"),
        (&["--threshold", "lock=row: p99 < 1s"], "lock=row"),
        (&["--target", "https://127.0.0.1:1"], "--target"),
        (
            &["--report", "/nowhere/report.html"],
            "/nowhere/report.html",
        ),
        (&["--workload", "cars"], "--workload"),
        (&["--all-locks", "--side", "lock=row"], "--all-locks"),
        (&["--think=-1s"], "from 0s"),
        (&["--quick"], "--quick"),
    ] {
        let ran = Load::of(&world, &[A], flags).ends().await;
        ran.exits_with(64);
        let log = ran.log.trim_end();
        assert!(log.contains(told), "{flags:?} is told as {log:?}");
        assert_eq!(log.lines().count(), 1, "{flags:?} is told as {log:?}");
    }
}

#[tokio::test]
async fn two_reports_in_one_file_are_refused_and_leave_none() {
    let folder = Scratch::new("same");
    let json = folder.join("report");
    let history = folder.path().join(".").join("report");
    let [json, history] = [&json, &history].map(|path| path.to_str().expect("a readable path"));
    let flags = ["--json", json, "--history", history];
    let ran = Load::at(&["http://127.0.0.1:1".to_owned()], &flags)
        .ends()
        .await;
    ran.exits_with(64);
    assert!(ran.log.contains("the same file"), "{}", ran.log);
    assert!(!folder.join("report").exists(), "an empty file is left");
}

#[tokio::test]
async fn without_a_replica_nothing_is_known() {
    let nobody = format!("127.0.0.1:{}", free_ports(1));
    let ran = Load::at(&[format!("http://{nobody}")], &[]).ends().await;
    ran.exits_with(2);
    let told = format!("{nobody}: connection refused");
    assert!(ran.log.contains(&told), "{}", ran.log);
}

#[tokio::test]
async fn a_replica_that_is_frozen_before_the_run_is_named() {
    let world = World::own(Database::Sqlite).start().await;
    world.process(A).freezes().await;
    let ran = Load::of(&world, &[A], &[]).ends().await;
    ran.exits_with(2);
    let told = format!("no target answers: {}: timeout", world.url(A));
    assert!(ran.log.contains(&told), "{}", ran.log);
}

#[tokio::test]
async fn a_threshold_that_nothing_exercised_cannot_be_decided() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = [
        "--workload",
        "seats",
        "--hot",
        "0",
        "--rate",
        "20",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--threshold",
        "violations = 0",
    ];
    let ran = Load::of(&world, &[A], &flags).ends().await;
    ran.exits_with(2).left_no_room(&world).await;
    assert_eq!(ran.side("defaults")["outcome"], "not-exercised");
    assert!(ran.table.contains("not exercised"), "{}", ran.table);
}

/// Everybody is refused alike, and met others: but nobody had anything that could have been taken twice.
#[tokio::test]
async fn where_nothing_can_be_done_nothing_was_exercised() {
    let world = World::own(Database::Sqlite).start().await;
    world.redis().lock().await.kill().await.expect("it ends");
    let flags = ["--side", "lock=redis", "--threshold", "violations = 0"];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(2).left_no_room(&world).await;
    let side = ran.side("lock=redis");
    assert_eq!(side["outcome"], "not-exercised", "{side}");
    assert!(ran.table.contains("nothing was done"), "{}", ran.table);
}

#[tokio::test]
async fn a_report_that_cannot_be_written_is_no_threshold_that_fails() {
    let world = World::own(Database::Sqlite).start().await;
    for file in ["--report", "--json", "--history"] {
        let flags = [file, "/dev/full", "--duration", "1s", "--warm-up", "0s"];
        let ran = Load::of(&world, &[A], &flags).ends().await;
        ran.exits_with(2).left_no_room(&world).await;
        assert!(ran.log.contains("/dev/full"), "{}", ran.log);
        assert!(ran.table.contains("defaults"), "all the same: {}", ran.log);
    }
}

#[tokio::test]
async fn a_threshold_that_fails_is_more_than_one_that_cannot_be_decided() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = [
        "--side",
        "lock=table",
        "--threshold",
        "p50 < 0ms",
        "--threshold",
        "violations = 0",
    ];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(1).left_no_room(&world).await;
}

#[tokio::test]
async fn an_earlier_report_is_kept_until_there_is_another() {
    let world = World::own(Database::Sqlite).start().await;
    let folder = Scratch::new("kept");
    let (earlier, new) = (folder.join("earlier.json"), folder.join("new.html"));
    // Longer than any report, so that a rest of it would be seen.
    let kept = "an earlier report\n".repeat(100_000);
    std::fs::write(&earlier, &kept).expect("a file");
    let files = [
        "--json",
        earlier.to_str().expect("UTF-8"),
        "--report",
        new.to_str().expect("UTF-8"),
    ];

    // Told by the replica, after the files were opened.
    let refused = [&files[..], &["--side", "ttl_ms=1"]].concat();
    Load::of(&world, &[A], &refused).ends().await.exits_with(64);
    let found = std::fs::read_to_string(&earlier).expect("it is there");
    assert!(found == kept, "{} bytes are left", found.len());
    assert!(!new.exists(), "an empty report");

    let runs = [
        &files[..],
        &["--rate", "20", "--duration", "1s", "--warm-up", "0s"],
    ]
    .concat();
    Load::of(&world, &[A], &runs).ends().await.exits_with(0);
    let found = std::fs::read_to_string(&earlier).expect("it is there");
    let report: Result<serde_json::Value, _> = serde_json::from_str(&found);
    assert!(report.is_ok(), "{report:?}");
    assert!(new.exists());
}
