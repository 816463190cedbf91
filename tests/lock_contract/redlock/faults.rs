//! Nodes that are dead, hang, or whose replies are lost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{
    Answer, Claim, LockError, LockService, LockSystem as _, ReleaseOutcome, Released, Renewal,
    Trips, Wish, systems::Redlock,
};

use super::{
    LEASE, connect,
    nodes::{Nodes, until_available},
    pair_of,
    scripts::RELEASE,
};
use crate::{
    forwarder::Forwarder,
    pair::{
        LONG, Pair, at_once, claim, eventually, free, get, grant, is_confirmed, is_renewed_in_time,
        is_taken, is_unavailable, key, soon, wish,
    },
};

/// A lease that outlasts some failed renewals.
const MIDDLE: Duration = Duration::from_millis(1_500);

async fn connect_over_cables() -> Result<(Pair, Nodes)> {
    let nodes = Nodes::start().await?;
    let pair = pair_of(nodes.open_over_cables()?, nodes.open()?).await?;
    Ok((pair, nodes))
}

fn middle(texts: &[&str]) -> Wish {
    Wish {
        ttl: MIDDLE,
        ..wish(texts)
    }
}

/// The middle of the times that it takes to get a free lock and to give it back.
async fn cycle(service: &LockService) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..41 {
        let began = Instant::now();
        let released = get(service, at_once(&["a"])).await?.release().await;
        ensure!(released == ReleaseOutcome::Released, "{released:?}");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Bugs 23 and 45. Whoever waited for it would wait for half a second each time.
#[tokio::test]
async fn a_node_that_hangs_does_not_change_the_latency() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    cycle(&pair.ana).await?;
    let before = cycle(&pair.ana).await?;
    nodes.pause(4)?;
    let hanging = cycle(&pair.ana).await?;
    let ratio = hanging.as_secs_f64() / before.as_secs_f64();
    println!("{before:?} with five nodes, {hanging:?} with one that hangs: ratio {ratio:.2}");
    ensure!(hanging < Duration::from_millis(250), "{hanging:?}");

    nodes.resume(4)?;
    nodes.until_free().await
}

#[tokio::test]
async fn two_dead_nodes_are_not_missed() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let mut last = None;
    let mut held = get(&pair.ana, wish(&["a"])).await?;
    for dead in [None, Some(0), Some(3)] {
        if let Some(node) = dead {
            nodes.kill(node).await?;
        }
        ensure!(is_confirmed(&held).await?, "lost with {dead:?}");
        ensure!(
            is_taken(&pair.ben, &["a"]).await?,
            "not taken with {dead:?}"
        );
        let token = held.token(&key("a"));
        ensure!(token > last, "{token:?} after {last:?}");
        last = token;
        ensure!(held.release().await == ReleaseOutcome::Released);
        held = get(&pair.ben, wish(&["a"])).await?;
    }
    Ok(())
}

#[tokio::test]
async fn three_dead_nodes_are_unavailable_at_once_and_no_key_stays_on_the_living() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    drop(get(&pair.ana, wish(&["a"])).await?);
    nodes.until_free().await?;
    for node in 0..3 {
        nodes.kill(node).await?;
    }
    for service in [&pair.ana, &pair.ben] {
        let began = Instant::now();
        let refused = service.acquire(wish(&["a"])).await;
        println!("three dead were told after {:?}", began.elapsed());
        ensure!(is_unavailable(&refused), "{refused:?}");
        ensure!(began.elapsed() < Duration::from_secs(3));
    }
    nodes.until_free().await
}

/// Also when they hang, and also when everything does; and it works again when they go on.
#[tokio::test]
async fn nodes_that_hang_are_unavailable_within_the_wait_limit_and_work_when_they_go_on()
-> Result<()> {
    let (pair, mut nodes) = connect().await?;
    for hanging in [3, 5] {
        drop(get(&pair.ana, wish(&["a"])).await?);
        drop(get(&pair.ben, wish(&["a"])).await?);
        for node in 0..hanging {
            nodes.pause(node)?;
        }
        for service in [&pair.ana, &pair.ben] {
            let limit = Duration::from_millis(200);
            let began = Instant::now();
            let refused = service
                .acquire(Wish {
                    wait: limit,
                    ..wish(&["a"])
                })
                .await;
            println!("{hanging} that hang were told after {:?}", began.elapsed());
            ensure!(is_unavailable(&refused), "{refused:?}");
            ensure!(began.elapsed() < 3 * (limit + Duration::from_secs(1)));
        }
        for node in 0..hanging {
            nodes.resume(node)?;
        }
        until_available(&pair.ana, &["a"]).await?;
        until_available(&pair.ben, &["a"]).await?;
        nodes.until_free().await?;
    }
    Ok(())
}

/// Who got no turn has sent nothing, and nothing is given back for it.
#[tokio::test]
async fn who_gets_no_turn_at_nodes_that_hang_is_told_so() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    drop(get(&pair.ana, at_once(&["a"])).await?);
    for node in 0..5 {
        nodes.pause(node)?;
    }
    let asking: Vec<_> = (0..64)
        .map(|number| {
            let (ana, claim) = (pair.ana.clone(), claim(&[&format!("key {number}")], LONG));
            tokio::spawn(async move { ana.system().ask(&claim).await })
        })
        .collect();
    let hasty = Claim {
        patience: Duration::from_millis(20),
        ..claim(&["a"], LONG)
    };
    eventually("the turns are taken", async || {
        let answer = pair.ana.system().ask(&hasty).await;
        answer == Err(LockError::TooManyWaiters { limit: 64 })
    })
    .await?;
    for one in asking {
        ensure!(is_unavailable(&one.await?));
    }
    Ok(())
}

#[tokio::test]
async fn nodes_that_were_never_there_do_not_keep_a_program_from_starting() -> Result<()> {
    let urls = [
        "redis://127.0.0.1:1",
        "redis://127.0.0.1:2",
        "redis://127.0.0.1:3",
    ];
    let redlock = Redlock::open(&urls)?;
    ensure!(is_unavailable(&redlock.ask(&claim(&["a"], LONG)).await));
    ensure!(is_unavailable(&redlock.renew(&claim(&["a"], LONG)).await));
    ensure!(is_unavailable(
        &free(
            &LockService::new(std::sync::Arc::new(redlock)),
            &claim(&["a"], LONG)
        )
        .await
    ));
    Ok(())
}

/// Bug 41.
#[tokio::test]
async fn who_waits_is_told_that_the_nodes_went_down() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let held = get(&pair.ana, middle(&["a"])).await?;
    let waiter = tokio::spawn({
        let ben = pair.ben.clone();
        async move { ben.acquire(wish(&["a"])).await }
    });
    eventually("somebody waits", async || pair.ben.waiting() == 1).await?;
    for node in 0..5 {
        nodes.kill(node).await?;
    }
    let refused = soon("the waiter is told", waiter).await??;
    ensure!(is_unavailable(&refused), "{refused:?}");
    soon("the own timer tells the loss", held.lost()).await
}

/// Bugs 3, 4 and 16: the grant is neither counted twice nor left behind, and the owner does not block itself.
#[tokio::test]
async fn a_grant_whose_reply_is_lost_is_found_again_by_its_owner_and_freed_for_others() -> Result<()>
{
    let (pair, nodes) = connect_over_cables().await?;
    drop(get(&pair.ana, wish(&["warm"])).await?);
    let claim = claim(&["a"], LONG);
    nodes.mute_all(true);
    ensure!(is_unavailable(&pair.ana.system().ask(&claim).await));
    nodes.mute_all(false);
    let granted = soon("its owner gets it", async {
        loop {
            match pair.ana.system().ask(&claim).await {
                Ok(Answer::Granted(grant)) => break Ok(grant),
                Ok(Answer::Refused { .. }) => anyhow::bail!("it blocks itself"),
                Err(_) => {}
            }
        }
    });
    granted.await??;
    ensure!(is_taken(&pair.ben, &["a"]).await?);
    ensure!(free(&pair.ana, &claim).await? == Released::Released);
    ensure!(!is_taken(&pair.ben, &["a"]).await?, "it was granted twice");
    nodes.until_free().await?;

    nodes.mute_all(true);
    ensure!(is_unavailable(&pair.ana.acquire(at_once(&["b"])).await));
    nodes.mute_all(false);
    nodes.until_free().await
}

/// Bugs 5, 8 and 25.
#[tokio::test]
async fn a_lease_outlives_renewals_whose_replies_are_lost() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    let held = get(
        &pair.ana,
        Wish {
            ttl: 6 * MIDDLE,
            ..wish(&["a"])
        },
    )
    .await?;
    let trips = held.trips();
    nodes.mute_all(true);
    eventually("a renewal is sent", async || held.trips() > trips).await?;
    nodes.mute_all(false);
    let first = held.deadline();
    eventually("it is renewed", async || held.deadline() > first).await?;
    held.check()?;
    Ok(())
}

/// Bug 25: three nodes that cannot be asked are no reason to give up what is held.
#[tokio::test]
async fn a_renewal_without_a_majority_is_neither_kept_nor_lost() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let claim = claim(&["a"], LONG);
    grant(&pair.ana, &claim).await?;
    for node in 0..3 {
        nodes.pause(node)?;
    }
    ensure!(is_unavailable(&pair.ana.system().renew(&claim).await));
    for node in 0..3 {
        nodes.resume(node)?;
    }
    eventually("it is kept", async || {
        matches!(pair.ana.system().renew(&claim).await, Ok(Renewal::Kept))
    })
    .await?;
    ensure!(is_taken(&pair.ben, &["a"]).await?);
    Ok(())
}

/// Bugs 2 and 16.
#[tokio::test]
async fn a_release_whose_reply_is_lost_is_sent_again_and_frees_nothing_else() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    get(&pair.ana, wish(&["warm"])).await?.release().await;
    let held = get(&pair.ana, wish(&["a"])).await?;
    nodes.mute_all(true);
    let releasing = held.release();
    let next = get(&pair.ben, wish(&["a"])).await?;
    nodes.mute_all(false);
    let outcome = soon("it ends", releasing).await?;
    ensure!(outcome == ReleaseOutcome::Unknown, "{outcome:?}");
    ensure!(is_confirmed(&next).await?, "it freed the next holder");
    Ok(())
}

/// A majority frees it at once; the others would keep it until the lease is over, and one more failure would then make the
/// lock unavailable.
#[tokio::test]
async fn a_release_reaches_the_nodes_whose_connections_hang_as_well() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    nodes.until_everywhere("a").await?;
    nodes.cables[..2].iter().for_each(Forwarder::hang);
    ensure!(held.release().await == ReleaseOutcome::Released);
    nodes.until_free().await
}

/// Who holds nothing any more is told so, also when it took a second try.
#[tokio::test]
async fn a_release_over_connections_that_were_cut_tells_that_the_lock_is_free() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    nodes.until_everywhere("a").await?;
    nodes.cables.iter().for_each(Forwarder::cut);
    let outcome = held.release().await;
    ensure!(outcome == ReleaseOutcome::Released, "{outcome:?}");
    nodes.until_free().await
}

/// It must be told the script of the ask first, and knows that of the release.
#[tokio::test]
async fn a_release_that_overtakes_the_ask_at_a_late_node_frees_it_there_as_well() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    get(&pair.ana, wish(&["warm"])).await?.release().await;
    nodes.until_free().await?;
    for late in [3, 4] {
        nodes.knows_only(late, RELEASE).await?;
        nodes.pause(late)?;
    }
    let longer = Wish {
        ttl: 2 * LONG,
        ..wish(&["a"])
    };
    let held = get(&pair.ana, longer).await?;
    ensure!(held.release().await == ReleaseOutcome::Released);
    for late in [3, 4] {
        nodes.resume(late)?;
        eventually("the ask came", async || {
            nodes.longest_lease(late).await.ok() == Some(2 * LONG)
        })
        .await?;
    }
    nodes.until_free().await
}

/// The first request on a connection that was cut is sent again: nobody sees an error.
#[tokio::test]
async fn connections_that_are_cut_while_somebody_waits_or_holds_are_made_anew() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    let held = get(&pair.ben, wish(&["a"])).await?;
    let trips = Trips::default();
    let waiter = tokio::spawn({
        let (ana, trips) = (pair.ana.clone(), trips.clone());
        async move {
            ana.acquire(Wish {
                trips,
                ..wish(&["a"])
            })
            .await
        }
    });
    eventually("the waiter has asked", async || trips.get() > 1).await?;
    let made = pair.ana.system().connections();
    nodes.cables.iter().for_each(|cable| cable.cut());
    eventually("connections are made anew", async || {
        pair.ana.system().connections() >= made + 3
    })
    .await?;
    held.release().await;
    let held = soon("the waiter is let in", waiter).await???;
    nodes.cables.iter().for_each(|cable| cable.cut());
    ensure!(is_confirmed(&held).await?);
    Ok(())
}

/// As behind a firewall that forgot them.
#[tokio::test]
async fn connections_that_hang_are_replaced_before_the_lease_is_over() -> Result<()> {
    let (pair, nodes) = connect_over_cables().await?;
    let held = get(
        &pair.ana,
        Wish {
            ttl: 6 * MIDDLE,
            ..wish(&["a"])
        },
    )
    .await?;
    nodes.cables.iter().for_each(|cable| cable.hang());
    is_renewed_in_time(&held).await
}

/// A node that hung gets the key late. It is freed as soon as it goes on, also when nobody holds the lock any more.
#[tokio::test]
async fn what_is_granted_late_is_given_back_when_it_arrives() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    drop(get(&pair.ana, wish(&["warm"])).await?);
    nodes.until_free().await?;
    nodes.pause(2)?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    ensure!(is_taken(&pair.ben, &["a"]).await?);
    ensure!(held.release().await == ReleaseOutcome::Released);
    nodes.resume(2)?;
    nodes.until_free().await
}

/// All nodes get the key, not only the majority that is waited for: else the loss of one could lose the lock.
#[tokio::test]
async fn nodes_that_answer_late_get_the_key_and_the_token_as_well() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    drop(get(&pair.ana, wish(&["warm"])).await?);
    nodes.pause(3)?;
    nodes.pause(4)?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    nodes.resume(3)?;
    nodes.resume(4)?;
    let token = held.token(&key("a")).context("no token")?.to_string();
    eventually("all nodes have key and token", async || {
        let mut having = 0;
        for node in 0..5 {
            let value: Option<String> = nodes
                .run(node, &["GET", "{doublebook}:redlock:lock:a"])
                .await
                .unwrap_or_default();
            having += usize::from(value.is_some_and(|value| value.ends_with(&format!("|{token}"))));
        }
        having == 5
    })
    .await
}

/// A minority that is won in vain must not stand in the way of others, nor of the next try.
#[tokio::test]
async fn what_a_refused_ask_got_is_given_back_at_once() -> Result<()> {
    let (pair, nodes) = connect().await?;
    for node in 0..3 {
        let others = [
            "SET",
            "{doublebook}:redlock:lock:a",
            "cc|1|1",
            "PX",
            "60000",
        ];
        nodes.run::<()>(node, &others).await?;
    }
    let answer = pair.ana.system().ask(&claim(&["a"], LONG)).await?;
    ensure!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    for node in [3, 4] {
        eventually("what it got is given back", async || {
            !nodes.has(node, "a").await.unwrap_or(true)
        })
        .await?;
    }
    ensure!(nodes.has(0, "a").await?, "it freed what was another's");
    Ok(())
}

/// Somebody frees one of two keys between the two phases, as a stale blind release does. The other one is still there.
#[tokio::test]
async fn who_lost_one_of_two_keys_between_the_phases_gives_the_other_one_back() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    drop(get(&pair.ana, at_once(&["a", "b"])).await?);
    nodes.until_free().await?;
    nodes.kill(3).await?;
    nodes.kill(4).await?;
    nodes.pause(2)?;
    let asking = tokio::spawn({
        let ana = pair.ana.clone();
        async move { ana.system().ask(&claim(&["a", "b"], LONG)).await }
    });
    for node in [0, 1] {
        eventually("the first phase is over there", async || {
            nodes.has(node, "a").await.unwrap_or(false)
        })
        .await?;
        nodes
            .run::<()>(node, &["DEL", "{doublebook}:redlock:lock:a"])
            .await?;
    }
    nodes.resume(2)?;
    let answer = soon("it is told", asking).await???;
    ensure!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    nodes.until_free().await
}

/// Bug 24: a renewal makes no key where there is none.
#[tokio::test]
async fn a_renewal_does_not_bring_a_key_back_to_a_node_that_lost_it() -> Result<()> {
    let (pair, nodes) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    nodes.until_everywhere("a").await?;
    nodes
        .run::<()>(1, &["DEL", "{doublebook}:redlock:lock:a"])
        .await?;
    ensure!(
        is_confirmed(&held).await?,
        "one node of five is not the lock"
    );
    ensure!(!nodes.has(1, "a").await?, "the renewal made a key");
    for node in [2, 3] {
        nodes
            .run::<()>(node, &["DEL", "{doublebook}:redlock:lock:a"])
            .await?;
    }
    ensure!(
        !is_confirmed(&held).await?,
        "three nodes of five have lost it"
    );
    ensure!(held.release().await == ReleaseOutcome::NotTheOwner);
    nodes.until_free().await
}

/// Bug 30: it may be behind, so it has no vote.
#[tokio::test]
async fn a_node_that_became_a_replica_does_not_vote() -> Result<()> {
    let (pair, nodes) = connect().await?;
    drop(get(&pair.ana, wish(&["a"])).await?);
    nodes.until_free().await?;
    for node in 0..2 {
        nodes
            .run::<()>(node, &["REPLICAOF", "127.0.0.1", "1"])
            .await?;
    }
    drop(get(&pair.ana, at_once(&["a"])).await?);
    nodes.run::<()>(2, &["REPLICAOF", "127.0.0.1", "1"]).await?;
    let refused = pair.ben.acquire(at_once(&["a"])).await;
    ensure!(is_unavailable(&refused), "{refused:?}");
    Ok(())
}

/// Clients that stop in the middle, and nodes that fail in turn: nobody blocks the lock for longer than a lease.
#[tokio::test]
async fn what_a_killed_holder_leaves_is_over_with_its_lease() -> Result<()> {
    let (pair, mut nodes) = connect().await?;
    let dead = claim(&["a"], LEASE);
    let token = grant(&pair.ana, &dead).await?.token(&key("a"));
    nodes.kill(1).await?;
    let next = get(&pair.ben, wish(&["a"])).await?;
    ensure!(next.token(&key("a")) > token);
    eventually("it is lost", async || {
        matches!(pair.ana.system().renew(&dead).await, Ok(Renewal::Lost))
    })
    .await?;
    eventually("there is nothing to free", async || {
        matches!(free(&pair.ana, &dead).await, Ok(Released::NotTheOwner))
    })
    .await?;
    ensure!(is_confirmed(&next).await?);
    let refused = pair.ana.acquire(at_once(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Timeout { .. })),
        "{refused:?}"
    );
    Ok(())
}
