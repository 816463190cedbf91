//! The same seed gives the same schedule, whatever the side.

use serde_json::Value;

use crate::generator::{Load, Loaded};
use crate::support::{Database, World};

const FLAGS: [&str; 14] = [
    "--workload",
    "mixed",
    "--hot",
    "2",
    "--rate",
    "30",
    "--duration",
    "2s",
    "--warm-up",
    "1s",
    "--side",
    "lock=table",
    "--side",
    "compare=on",
];

#[tokio::test]
async fn the_same_seed_is_the_same_schedule_on_every_side_and_in_every_run() {
    let world = World::shared(Database::Sqlite).await;
    let of = async |seed| {
        Load::on(&world, &[&FLAGS[..], &["--seed", seed]].concat())
            .ends()
            .await
    };
    let (first, again, other) = (of("7").await, of("7").await, of("8").await);
    let wanted = wanted(&first, "lock=table");
    assert!(wanted.len() > 30, "{}", wanted.len());
    assert_eq!(wanted, self::wanted(&first, "compare=on"), "the other side");
    assert_eq!(wanted, self::wanted(&again, "lock=table"), "the other run");
    assert_ne!(wanted, self::wanted(&other, "lock=table"), "the other seed");
    let fingerprint = |ran: &Loaded| ran.report["asked"]["schedules"].clone();
    assert_eq!(fingerprint(&first), fingerprint(&again));
    assert_ne!(fingerprint(&first), fingerprint(&other));
}

#[tokio::test]
async fn turns_and_repetitions_gather_all_that_was_driven() {
    let world = World::shared(Database::Sqlite).await;
    let flags = ["--interleave", "500ms", "--repeat", "3"];
    let ran = Load::on(&world, &[&FLAGS[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(0);
    let first = ran.side("lock=table");
    assert_eq!(first["runs"].as_array().map(Vec::len), Some(3));
    let difference = &ran.side("compare=on")["differences"]["p50"];
    assert!(
        ["significant", "not-significant"]
            .contains(&difference["verdict"].as_str().unwrap_or_default()),
        "{difference}"
    );
    let invoked = ran
        .events("lock=table")
        .filter(|event| event["event"] == "invoked")
        .count();
    assert_eq!(first["verdict"]["attempts"], invoked);
    assert_eq!(ran.side("compare=on")["verdict"]["attempts"], invoked);
}

/// Times of the schedule and what was wanted then, in that order.
fn wanted(ran: &Loaded, side: &str) -> Vec<Value> {
    let mut wanted: Vec<_> = ran
        .events(side)
        .filter(|event| event["event"] == "invoked" && event["measured_ns"].is_u64())
        .map(|event| {
            let fields = [
                "measured_ns",
                "wish",
                "seat",
                "buyer",
                "from",
                "to",
                "amount",
                "target",
            ];
            Value::from_iter(fields.map(|field| (field, event[field].clone())))
        })
        .collect();
    wanted.sort_by_key(|event| (event["measured_ns"].as_u64(), event.to_string()));
    wanted
}
