//! A Redlock keeps the contract, and what only a Redlock can do wrong: when nodes fail (`faults`), when they forget
//! (`memory`), and what its scripts do at one node (`scripts`).

mod faults;
mod memory;
mod nodes;
mod scripts;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{LockError, LockSystem as _, ReleaseOutcome, Wish, systems::Redlock};
use futures_util::future::try_join_all;

use self::nodes::Nodes;
use crate::pair::{
    LONG, PATIENCE, Pair, at_once, claim, eventually, free, get, grant, is_confirmed, is_taken,
    key, keys, wish,
};

/// Each renewal needs three answers of five, within a part of the lease that a slow machine can keep.
const LEASE: Duration = Duration::from_millis(1_500);

async fn connect() -> Result<(Pair, Nodes)> {
    let nodes = Nodes::start().await?;
    let pair = pair_of(nodes.open()?, nodes.open()?).await?;
    Ok((pair, nodes))
}

/// Two services that have compared their nodes, as replicas do before they ask.
async fn pair_of(ana: Redlock, ben: Redlock) -> Result<Pair> {
    for redlock in [&ana, &ben] {
        eventually("the nodes have a name", async || {
            redlock.server("the first name").await.is_ok()
        })
        .await?;
    }
    Ok(Pair {
        lease: LEASE,
        ..Pair::new(ana, ben)
    })
}

crate::every_lock!(connect());
crate::leases!(connect());
crate::blind_releases!(connect());

#[test]
fn a_redlock_has_an_odd_number_of_different_nodes() {
    let is_bad = |urls: &[&str]| matches!(Redlock::open(urls), Err(LockError::BadSetting { .. }));
    let [a, b, c, d] = ["redis://a", "redis://b", "redis://c", "redis://d"];
    assert!(Redlock::open(&[a, b, c]).is_ok());
    assert!(is_bad(&[a]) && is_bad(&[a, b]) && is_bad(&[a, b, c, d]));
    assert!(is_bad(&[a, b, "redis://b:6379/0"]));
    assert!(is_bad(&[a, b, "http://c"]));
}

#[tokio::test]
async fn an_address_never_holds_the_password() -> Result<()> {
    let urls = [1, 2, 3].map(|port| format!("redis://someone:secret@127.0.0.1:{port}/3"));
    let error = Redlock::open(&urls)?
        .ask(&claim(&["a"], LONG))
        .await
        .expect_err("nobody listens there");
    ensure!(error.to_string().contains("127.0.0.1:1"), "{error}");
    ensure!(!error.to_string().contains("secret"), "{error}");
    Ok(())
}

/// Bugs 6 and 34: no renewal comes after a release, and what stays is two keys for all locks there ever were.
#[tokio::test]
async fn a_thousand_short_holds_leave_two_keys_at_each_node() -> Result<()> {
    let (pair, nodes) = connect().await?;
    for number in 0..1_000 {
        let name = format!("key {}", number % 10);
        let short = Wish {
            ttl: LEASE,
            ..wish(&[&name])
        };
        let held = get(&pair.ana, short).await?;
        tokio::task::yield_now().await;
        held.release().await;
    }
    ensure!(pair.ana.settle(PATIENCE).await);
    nodes.until_free().await?;
    for node in 0..5 {
        let mut left: Vec<String> = nodes.run(node, &["KEYS", "*"]).await?;
        left.sort();
        ensure!(
            left == ["{doublebook}:redlock:member", "{doublebook}:redlock:record"],
            "{left:?}"
        );
        for key in left {
            let rest: i64 = nodes.run(node, &["PTTL", &key]).await?;
            ensure!(rest == -1, "{key} ends in {rest} ms");
        }
        let fields: usize = nodes
            .run(node, &["HLEN", "{doublebook}:redlock:record"])
            .await?;
        ensure!(fields <= 10 + 2, "{fields} fields for ten locks");
    }
    Ok(())
}

/// Bug 42, and names that a script, a path or a pattern could misread.
#[tokio::test]
async fn odd_names_mean_the_same_lock_and_different_ones_do_not_collide() -> Result<()> {
    let (pair, _nodes) = connect().await?;
    let long = "x".repeat(300);
    let longer = "x".repeat(301);
    let names = [
        "a",
        "A",
        " a",
        "a ",
        "a/b",
        "a//b",
        "../a",
        "..",
        "%2e",
        "%",
        "a%20b",
        "a b",
        "a|b",
        "a:b",
        "{a}",
        "{doublebook}:redlock:lock:a",
        "*",
        "?",
        "[a]",
        "\\",
        "\"",
        "'",
        "é",
        "e\u{301}",
        "ключ",
        "鍵",
        "\u{1f512}",
        "0",
        "-1",
        &long,
        &longer,
    ];
    let mut held = Vec::new();
    for name in names {
        held.push(
            get(&pair.ana, at_once(&[name]))
                .await
                .context(name.to_owned())?,
        );
    }
    for name in names {
        ensure!(is_taken(&pair.ben, &[name]).await?, "{name:?} is not taken");
    }
    for one in held {
        ensure!(one.release().await == ReleaseOutcome::Released);
    }
    for name in names {
        ensure!(
            !is_taken(&pair.ben, &[name]).await?,
            "{name:?} is still taken"
        );
    }
    Ok(())
}

/// Two wallets: one token for both, larger than what either had before.
#[tokio::test]
async fn several_keys_share_a_token_that_is_larger_than_those_of_each() -> Result<()> {
    let (pair, _nodes) = connect().await?;
    for texts in [
        &["a"][..],
        &["b"],
        &["b"],
        &["a", "b", "c"],
        &["c"],
        &["a", "c"],
    ] {
        let claim = claim(texts, LONG);
        let granted = grant(&pair.ana, &claim).await?;
        let tokens: Vec<_> = granted.iter().map(|(_, token)| token).collect();
        ensure!(
            tokens
                .iter()
                .all(|token| token.is_some() && *token == tokens[0])
        );
        free(&pair.ana, &claim).await?;
        let next = grant(&pair.ben, &crate::pair::claim(&["a", "b", "c"], LONG)).await?;
        for text in texts {
            ensure!(next.token(&key(text)) > granted.token(&key(text)), "{text}");
        }
        let vandal = crate::pair::claim(&["a", "b", "c"], LONG);
        let blind = doublebook::lock::ReleaseMode::Blind;
        pair.ana.system().release(&vandal, blind).await?;
    }
    Ok(())
}

/// Claims for different locks may meet at one counter: with more locks than counters some surely do.
#[tokio::test]
async fn locks_that_share_a_counter_do_not_hinder_each_other() -> Result<()> {
    let (pair, _nodes) = connect().await?;
    for wave in 0..24 {
        let claims = (0..50).map(async |number| {
            let service = if number % 2 == 0 {
                &pair.ana
            } else {
                &pair.ben
            };
            let name = format!("key {wave} {number}");
            get(service, wish(&[&name])).await?.check()?;
            Ok::<_, anyhow::Error>(())
        });
        try_join_all(claims).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_key_of_another_type_spoils_only_itself() -> Result<()> {
    let (pair, nodes) = connect().await?;
    drop(get(&pair.ana, at_once(&["c"])).await?);
    for node in 0..5 {
        let spoilt = "{doublebook}:redlock:lock:a";
        nodes
            .run::<()>(node, &["HSET", spoilt, "field", "value"])
            .await?;
    }
    let refused = pair.ana.acquire(wish(&["a"])).await;
    let Err(LockError::Unavailable { reason }) = refused else {
        anyhow::bail!("{refused:?}");
    };
    ensure!(reason.contains("{doublebook}:redlock:lock:a"), "{reason}");
    drop(get(&pair.ana, at_once(&["b"])).await?);
    Ok(())
}

#[tokio::test]
async fn scripts_are_loaded_again_when_the_nodes_forgot_them() -> Result<()> {
    let (pair, nodes) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    for confirmed in [true, false] {
        for node in 0..5 {
            nodes.run::<()>(node, &["SCRIPT", "FLUSH"]).await?;
        }
        if confirmed {
            ensure!(is_confirmed(&held).await?);
        }
    }
    ensure!(held.release().await == ReleaseOutcome::Released);
    drop(get(&pair.ben, at_once(&["a"])).await?);
    Ok(())
}

/// Dropped at every point of an acquisition: no key stays at any node.
#[tokio::test]
async fn futures_that_are_dropped_leave_no_key_at_any_node() -> Result<()> {
    let (pair, nodes) = connect().await?;
    drop(get(&pair.ana, wish(&["a"])).await?);
    for step in 0..60 {
        let limit = Duration::from_micros(step * 100);
        let _ = tokio::time::timeout(limit, pair.ana.acquire(wish(&["a", "b"]))).await;
    }
    ensure!(pair.ana.settle(PATIENCE).await);
    nodes.until_free().await?;
    ensure!(keys(&["a", "b"]).count() == 2 && !is_taken(&pair.ben, &["a", "b"]).await?);
    Ok(())
}
