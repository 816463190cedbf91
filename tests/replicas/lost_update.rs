//! Alice has 100 and gives 80 to bob and 80 to carol on two replicas.

use serde_json::{Value, json};

use crate::support::{A, B, Database, World, soak};

on_both_databases!(
    makes_money_appear_without_a_lock,
    is_counted_by_timing_alone
);

under_each_lock!(never_happens_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);

/// Both have read 100 before either of them writes 20.
async fn makes_money_appear_without_a_lock(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("lost-update", json!({"locking": false}))
        .await;

    let to_bob = room.transfers("alice", "bob", "80.00").on(A);
    let to_carol = room.transfers("alice", "carol", "80.00").on(B);
    let to_bob = to_bob.pausing_at("after_read").at_gate("both").starts();
    let to_carol = to_carol.pausing_at("after_read").at_gate("both").starts();
    room.both_wait_at_gate("both", "after_read").await;
    room.opens("both").await;

    to_bob.answer().await.is("transferred");
    to_carol.answer().await.is("transferred");
    assert_eq!(room.balance("alice").await, "20.00");
    let audit = room.audit().await;
    audit.only_wrong("alice", "20.00", "-60.00");
    assert_eq!(audit.money.difference, "80.00", "{audit:?}");
    assert!(
        audit.sentence.contains("80.00 appeared from nowhere"),
        "{audit:?}"
    );
}

/// The window is 200 ms wide, and how often both fall into it is counted.
async fn is_counted_by_timing_alone(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("by-timing", json!({"locking": false, "think_ms": 200}))
        .await;
    let mut lost = 0;
    for _ in 0..10 {
        room.resets().await;
        let to_bob = room.transfers("alice", "bob", "80.00").on(A).starts();
        let to_carol = room.transfers("alice", "carol", "80.00").on(B).starts();
        to_bob.answer().await;
        to_carol.answer().await;
        lost += usize::from(room.audit().await.money.difference == "80.00");
    }
    println!("an update lost by timing alone: {lost} of 10");
    assert!(lost >= 1, "never in 10 runs");
}

/// 100 wallets, each asked for 80 twice at the same moment: always one gets it and the other one hears that it is too little.
async fn never_happens_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    for _ in 0..soak() {
        let room = world
            .room_of("no-lost-update", json!({"wallets": three_for_each_run()}))
            .await;
        room.switches(json!({"lock": lock, "think_ms": 20, "ttl_ms": 20_000, "wait_ms": 30_000}))
            .await;

        for run in 0..100 {
            let [alice, bob, carol] = names(run);
            let to_bob = room.transfers(&alice, &bob, "80.00").on(A).starts();
            let to_carol = room.transfers(&alice, &carol, "80.00").on(B).starts();
            let mut outcomes = [
                to_bob.answer().await.outcome(),
                to_carol.answer().await.outcome(),
            ];
            outcomes.sort();
            assert_eq!(outcomes, ["insufficient-funds", "transferred"], "{alice}");
        }
        room.audit().await.is_clean_after(100);

        let room = room.looks().await;
        for wallet in room["wallets"].as_array().expect("a list") {
            let name = wallet["wallet"].as_str().expect("a name");
            if name.starts_with("alice") {
                assert_eq!(wallet["balance"], "20.00", "{name}");
            }
        }
    }
}

fn names(run: usize) -> [String; 3] {
    ["alice", "bob", "carol"].map(|name| format!("{name}-{run}"))
}

fn three_for_each_run() -> Vec<Value> {
    (0..100)
        .flat_map(names)
        .map(|name| json!({"name": name, "balance": "100.00"}))
        .collect()
}
