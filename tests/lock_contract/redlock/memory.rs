//! Nodes that forget, and nodes that are not the ones that the others mean.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{
    Answer, Claim, LockError, LockService, LockSystem as _, Owner, ReleaseOutcome, Token, Wish,
    systems::Redlock,
};
use futures_util::future::try_join_all;

use super::{connect, nodes::Nodes};
use crate::pair::{
    Pair, claim, eventually, get, grant, is_confirmed, is_unavailable, key, soon, wish,
};

/// All leases here are short, since a node that has lost its memory keeps silent for as long as the longest of them.
const LEASE: Duration = Duration::from_millis(800);

const MARK: &str = "{doublebook}:redlock:member";
const RECORD: &str = "{doublebook}:redlock:record";

fn short(texts: &[&str]) -> Wish {
    Wish {
        ttl: LEASE,
        ..wish(texts)
    }
}

async fn next_token(service: &LockService) -> Result<Token> {
    let held = get(service, short(&["a"])).await?;
    let token = held.token(&key("a")).context("no token")?;
    held.release().await;
    Ok(token)
}

async fn is_member(nodes: &Nodes, node: usize) -> bool {
    let mark: Result<Option<String>> = nodes.run(node, &["GET", MARK]).await;
    matches!(mark, Ok(Some(_)))
}

/// Uses the lock until the node has been admitted.
async fn until_admitted(pair: &Pair, nodes: &Nodes, node: usize) -> Result<()> {
    eventually("the node is admitted", async || {
        let _ = next_token(&pair.ben).await;
        is_member(nodes, node).await
    })
    .await
}

/// Ana holds the lock at nodes 0, 1 and 2 only; then node 2 forgets.
async fn held_by_three_of_which_one_forgets() -> Result<(Pair, Nodes, Claim)> {
    let (pair, mut nodes) = connect().await?;
    next_token(&pair.ana).await?;
    next_token(&pair.ben).await?;
    nodes.until_free().await?;
    nodes.pause(3)?;
    nodes.pause(4)?;
    let held = claim(&["a"], Duration::from_secs(5));
    grant(&pair.ana, &held).await?;
    nodes.kill(2).await?;
    nodes.start_again(2).await?;
    nodes.resume(3)?;
    nodes.resume(4)?;
    // What was under way to them is gone.
    for node in [3, 4] {
        nodes
            .run::<()>(node, &["DEL", "{doublebook}:redlock:lock:a"])
            .await?;
    }
    Ok((pair, nodes, held))
}

/// Bug 29.
#[tokio::test]
async fn a_node_that_forgot_does_not_let_a_second_holder_in() -> Result<()> {
    let (pair, nodes, _held) = held_by_three_of_which_one_forgets().await?;
    for _ in 0..20 {
        let other = claim(&["a"], LEASE);
        let answer = pair.ben.system().ask(&other).await;
        ensure!(!matches!(answer, Ok(Answer::Granted(_))), "{answer:?}");
    }
    ensure!(!is_member(&nodes, 2).await, "it was admitted");
    Ok(())
}

/// The same without the guard: somebody gives the node its mark back at once, and the damage is seen.
#[tokio::test]
async fn a_node_that_forgot_and_votes_lets_a_second_holder_in() -> Result<()> {
    let (pair, nodes, _held) = held_by_three_of_which_one_forgets().await?;
    let mark: String = nodes.run(0, &["GET", MARK]).await?;
    nodes.run::<()>(2, &["SET", MARK, &mark]).await?;
    let held = soon("a second holder is let in", async {
        loop {
            let other = claim(&["a"], LEASE);
            if let Ok(Answer::Granted(grant)) = pair.ben.system().ask(&other).await {
                break grant;
            }
        }
    });
    held.await?;
    Ok(())
}

/// Not before the longest lease is over; and then it remembers what the others do.
#[tokio::test]
async fn a_node_that_forgot_is_admitted_after_the_longest_lease_with_the_counters_of_the_others()
-> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let before = next_token(&pair.ana).await?;
    nodes.kill(1).await?;
    nodes.start_again(1).await?;
    let began = Instant::now();
    until_admitted(&pair, &nodes, 1).await?;
    println!(
        "admitted after {:?}, with leases of {LEASE:?}",
        began.elapsed()
    );
    ensure!(began.elapsed() > LEASE, "admitted too soon");
    let record: HashMap<String, String> = nodes
        .run(1, &["HGETALL", "{doublebook}:redlock:record"])
        .await?;
    ensure!(
        record.get("longest") == Some(&LEASE.as_millis().to_string()),
        "{record:?}"
    );
    let counters = record
        .values()
        .filter_map(|value| value.parse::<i64>().ok());
    ensure!(counters.max() >= Some(before.get()), "{record:?}");
    ensure!(next_token(&pair.ben).await? > before);
    Ok(())
}

/// Bug 31, over each way in which nodes end and come back.
#[tokio::test]
async fn tokens_rise_over_restarts_of_each_node_and_of_all() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let mut tokens = vec![next_token(&pair.ana).await?];
    for node in 0..5 {
        nodes.kill(node).await?;
        tokens.push(next_token(&pair.ben).await?);
        nodes.start_again(node).await?;
        until_admitted(&pair, &nodes, node).await?;
        tokens.push(next_token(&pair.ana).await?);
    }
    for _ in 0..2 {
        for node in 0..5 {
            nodes.kill(node).await?;
        }
        for node in 0..5 {
            nodes.start_again(node).await?;
        }
        tokens.push(next_token(&pair.ana).await?);
        tokens.push(next_token(&pair.ben).await?);
    }
    for node in 0..5 {
        nodes.run::<()>(node, &["FLUSHALL"]).await?;
    }
    tokens.push(next_token(&pair.ben).await?);
    ensure!(
        tokens.is_sorted_by(|earlier, later| earlier < later),
        "{tokens:?}"
    );
    Ok(())
}

/// Three of five: the lock is not granted until their silence is over, then it goes on under a new name.
#[tokio::test]
async fn a_majority_that_forgot_is_a_new_server_after_the_longest_lease() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let before = next_token(&pair.ana).await?;
    for node in 0..3 {
        nodes.kill(node).await?;
    }
    for node in 0..3 {
        nodes.start_again(node).await?;
    }
    let began = Instant::now();
    let refused = pair.ana.acquire(short(&["a"])).await;
    ensure!(is_unavailable(&refused), "{refused:?}");
    let Err(LockError::Unavailable { reason }) = refused else {
        unreachable!();
    };
    ensure!(reason.contains("lost"), "{reason}");
    let mut after = None;
    eventually("they vote again", async || {
        after = next_token(&pair.ana).await.ok();
        after.is_some()
    })
    .await?;
    println!(
        "a majority that forgot votes again after {:?}",
        began.elapsed()
    );
    ensure!(began.elapsed() > LEASE, "after {:?}", began.elapsed());
    ensure!(after > Some(before), "{after:?} after {before:?}");
    eventually("it has a new name", async || {
        let named = pair.ben.system().server("second").await;
        matches!(named, Ok(Some(server)) if server.id == "second")
    })
    .await
}

/// A holder learns from the nodes that its lock is gone.
#[tokio::test]
async fn a_holder_is_told_when_a_majority_forgot() -> Result<()> {
    let (pair, nodes) = connect().await?;
    let held = get(&pair.ana, short(&["a"])).await?;
    for node in 0..3 {
        nodes.run::<()>(node, &["FLUSHALL"]).await?;
    }
    let began = Instant::now();
    soon("the loss is told", held.lost()).await?;
    println!("told after {:?} of {LEASE:?}", began.elapsed());
    ensure!(!is_confirmed(&held).await?);
    ensure!(held.release().await != ReleaseOutcome::Released);
    Ok(())
}

/// All of them meet five new nodes, and each draws a name.
#[tokio::test]
async fn replicas_that_start_together_make_one_redlock_with_one_name() -> Result<()> {
    let nodes = Nodes::start().await?;
    let replicas: Vec<_> = (0..6).map(|_| nodes.open()).collect::<Result<_>>()?;
    let named = replicas.iter().map(async |replica| {
        let draw = Owner::random().to_string();
        eventually("it has a name", async || {
            replica.server(&draw).await.is_ok()
        })
        .await
    });
    try_join_all(named).await?;

    let (mut names, mut marks) = (BTreeSet::new(), BTreeSet::new());
    for replica in &replicas {
        let server = replica.server("drawn later").await?;
        names.insert(server.context("no name")?.id);
    }
    for node in 0..5 {
        marks.insert(nodes.run::<String>(node, &["GET", MARK]).await?);
    }
    ensure!(names.len() == 1 && marks.len() == 1, "{names:?} {marks:?}");
    ensure!(!names.contains("drawn later"), "{names:?}");
    Ok(())
}

/// Nobody is told a name that is overwritten later: it would be compared with that for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_draw_at_the_same_time_are_told_one_name() -> Result<()> {
    let (_, nodes) = connect().await?;
    let replicas: Vec<_> = (0..6).map(|_| nodes.open()).collect::<Result<_>>()?;
    for round in 0..30 {
        for node in 0..5 {
            nodes.run::<()>(node, &["HDEL", RECORD, "name"]).await?;
        }
        let named = replicas.iter().map(async |replica| {
            let draw = Owner::random().to_string();
            let mut name = None;
            eventually("it has a name", async || {
                name = replica.server(&draw).await.ok().flatten();
                name.is_some()
            })
            .await?;
            anyhow::Ok(name.map(|server| server.id))
        });
        let names: BTreeSet<_> = try_join_all(named).await?.into_iter().collect();
        ensure!(names.len() == 1, "round {round}: {names:?}");
    }
    Ok(())
}

/// What each node is called; `None` where it has no name, or no memory.
async fn names(nodes: &Nodes) -> Result<Vec<Option<String>>> {
    let names = (0..5).map(|node| nodes.run(node, &["HGET", RECORD, "name"]));
    try_join_all(names).await
}

/// As replicas leave it that named new nodes at the same time.
async fn name_them(nodes: &Nodes, names: [&str; 5]) -> Result<()> {
    for (node, name) in names.into_iter().enumerate() {
        nodes
            .run::<()>(node, &["HSET", RECORD, "name", name])
            .await?;
    }
    Ok(())
}

/// Else the majority would be three certain nodes for ever, and one that forgets would make it a minority.
#[tokio::test]
async fn what_a_majority_is_called_the_others_are_called_too() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    name_them(&nodes, ["x", "x", "x", "y", "y"]).await?;
    ensure!(name(&pair.ana).await? == "x");
    let all_are_x = vec![Some("x".to_owned()); 5];
    ensure!(names(&nodes).await? == all_are_x);

    next_token(&pair.ana).await?;
    nodes.kill(0).await?;
    nodes.start_again(0).await?;
    ensure!(name(&pair.ana).await? == "x", "while a node is empty");
    until_admitted(&pair, &nodes, 0).await?;
    eventually("the admitted node is called the same", async || {
        names(&nodes).await.is_ok_and(|names| names == all_are_x)
    })
    .await
}

/// The name of two nodes must not become that of a majority because one without a memory is given it.
#[tokio::test]
async fn a_node_that_forgot_does_not_decide_between_two_names() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    next_token(&pair.ana).await?;
    nodes.kill(0).await?;
    nodes.start_again(0).await?;
    for (node, name) in [(1, "x"), (2, "x"), (3, "y"), (4, "y")] {
        nodes
            .run::<()>(node, &["HSET", RECORD, "name", name])
            .await?;
    }
    until_admitted(&pair, &nodes, 0).await?;
    eventually("they are named anew", async || {
        let named = pair.ana.system().server("anew").await;
        matches!(named, Ok(Some(server)) if server.id == "anew")
    })
    .await?;
    ensure!(names(&nodes).await? == vec![Some("anew".to_owned()); 5]);
    Ok(())
}

#[tokio::test]
async fn two_dead_nodes_do_not_change_the_name() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let before = name(&pair.ana).await?;
    ensure!(before == "the first name", "{before}");
    nodes.kill(0).await?;
    nodes.kill(1).await?;
    let after = nodes.open()?.server("another").await?;
    let after = after.context("no name")?;
    ensure!(after.id == before, "{after:?}");
    for url in nodes.urls() {
        ensure!(after.address.contains(&url["redis://".len()..]), "{url}");
    }
    nodes.kill(2).await?;
    ensure!(is_unavailable(&nodes.open()?.server("another").await));
    Ok(())
}

async fn name(service: &LockService) -> Result<String> {
    let server = service.system().server("drawn by a test").await?;
    Ok(server.context("no name")?.id)
}

#[tokio::test]
async fn a_replica_that_points_at_other_nodes_is_noticed() -> Result<()> {
    let (_, ours) = connect().await?;
    let theirs = Nodes::start().await?;
    let other = theirs.open()?;
    eventually(
        "they have a name",
        async || matches!(other.server("theirs").await, Ok(Some(server)) if server.id == "theirs"),
    )
    .await?;

    let mut urls = ours.urls();
    urls[4] = theirs.urls()[4].clone();
    let refused = Redlock::open(&urls)?.server("mixed").await;
    ensure!(is_unavailable(&refused), "{refused:?}");
    let text = format!("{refused:?}");
    ensure!(text.contains("another Redlock"), "{text}");
    ensure!(text.contains(&urls[4]["redis://".len()..]), "{text}");
    // Its vote does not count: with two that are dead there is no majority.
    urls[3] = "redis://127.0.0.1:1".to_owned();
    urls[2] = "redis://127.0.0.1:2".to_owned();
    let mixed = Redlock::open(&urls)?;
    ensure!(is_unavailable(&mixed.ask(&claim(&["a"], LEASE)).await));
    Ok(())
}

/// Two addresses of one node would be two votes.
#[tokio::test]
async fn one_node_under_two_addresses_is_noticed() -> Result<()> {
    let nodes = Nodes::start().await?;
    let urls = nodes.urls();
    let twice = urls[0].replace("127.0.0.1", "localhost");
    let refused = Redlock::open(&[&urls[0], &twice, &urls[1]])?
        .ask(&claim(&["a"], LEASE))
        .await;
    ensure!(
        is_unavailable(&refused) && format!("{refused:?}").contains("one node"),
        "{refused:?}"
    );
    Ok(())
}
