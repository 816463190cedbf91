//! What a lock is worth whose lock system is several servers, when one that leads is killed or hangs, and when a
//! majority is gone.

mod members;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{Held, LockError, LockService, Token, Wish};
use nix::sys::signal::Signal;
use tokio::time::Instant;

use self::members::{Ensemble, Kind};
use crate::pair::{at_once, is_unavailable, key, wish};

/// How long a lease or a session lasts. Longer than an election on a busy machine, for a lock that must outlive one.
const LONG: Duration = Duration::from_secs(30);

/// One that runs out within a test.
const SHORT: Duration = Duration::from_secs(4);

/// How long a change of leaders may take until requests are answered again.
const PATIENCE: Duration = Duration::from_secs(120);

macro_rules! of_each_kind {
    ($($case:ident),+ $(,)?) => {
        $(
            mod $case {
                use super::Kind;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn etcd() -> anyhow::Result<()> {
                    super::$case(Kind::Etcd).await
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn zookeeper() -> anyhow::Result<()> {
                    super::$case(Kind::ZooKeeper).await
                }
            }
        )+
    };
}

of_each_kind!(
    a_lock_outlives_a_leader_that_is_killed,
    a_lock_outlives_a_leader_that_hangs,
    without_a_majority_nobody_gets_it_and_its_holder_is_told,
);

/// Bug 31.
async fn a_lock_outlives_a_leader_that_is_killed(kind: Kind) -> Result<()> {
    let mut ensemble = Ensemble::start(kind).await?;
    let (ana, ben) = (ensemble.service(LONG)?, ensemble.service(LONG)?);
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let held = when_answered(&ana, LONG).await?;
        tokens.push(token(&held)?);
        let leader = ensemble.agrees().await?;
        ensemble.kills(leader).await?;
        is_held_all_the_same(&mut ensemble, leader, held, &ben).await?;

        let held = when_answered(&ben, LONG).await?;
        tokens.push(token(&held)?);
        held.release().await;
        ensemble.starts(leader).await?;
        ensemble.agrees().await?;
    }
    ensure!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?} do not rise");
    Ok(())
}

/// Its connections stay open, and nothing comes.
async fn a_lock_outlives_a_leader_that_hangs(kind: Kind) -> Result<()> {
    let mut ensemble = Ensemble::start(kind).await?;
    let (ana, ben) = (ensemble.service(LONG)?, ensemble.service(LONG)?);
    let held = when_answered(&ana, LONG).await?;
    let first = token(&held)?;
    let leader = ensemble.agrees().await?;
    ensemble.signals(leader, Signal::SIGSTOP)?;
    is_held_all_the_same(&mut ensemble, leader, held, &ben).await?;

    ensemble.signals(leader, Signal::SIGCONT)?;
    let next = when_answered(&ben, LONG).await?;
    ensure!(token(&next)? > first, "{:?} after {first:?}", token(&next)?);
    ensure!(is_confirmed(&next).await?, "the old leader took it away");
    Ok(())
}

/// The holder is told that it is, nobody else gets it, and it can be released.
async fn is_held_all_the_same(
    ensemble: &mut Ensemble,
    leader: usize,
    held: Held,
    other: &LockService,
) -> Result<()> {
    let began = Instant::now();
    ensemble.agrees_without(leader).await?;
    ensure!(is_confirmed(&held).await?, "it was lost with the leader");
    println!("confirmed {:?} after its leader was gone", began.elapsed());
    let refused = answered(other, at_once(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Timeout { .. })),
        "it was given to a second one: {refused:?}"
    );
    held.check()?;
    held.release().await;
    Ok(())
}

/// And when there is a majority again, its next holder has a higher token.
async fn without_a_majority_nobody_gets_it_and_its_holder_is_told(kind: Kind) -> Result<()> {
    let mut ensemble = Ensemble::start(kind).await?;
    let (ana, ben) = (ensemble.service(SHORT)?, ensemble.service(SHORT)?);
    let held = when_answered(&ana, SHORT).await?;
    let first = token(&held)?;
    let leader = ensemble.agrees().await?;
    let follower = (leader + 1) % 3;
    for dead in [leader, follower] {
        ensemble.kills(dead).await?;
    }

    let lost = held.lost();
    let deadline = held.deadline().context("a lease has a deadline")?;
    let refused = ben.acquire(at_once(&["b"])).await;
    ensure!(is_unavailable(&refused), "a minority granted: {refused:?}");
    lost.await;
    // A renewal may have been answered after the deadline was read.
    let late = Instant::now().saturating_duration_since(deadline);
    ensure!(late < SHORT + Duration::from_secs(3), "told {late:?} late");
    ensure!(held.check().is_err(), "it is said to be held");

    for dead in [leader, follower] {
        ensemble.starts(dead).await?;
    }
    let next = when_answered(&ben, SHORT).await?;
    ensure!(token(&next)? > first, "{:?} after {first:?}", token(&next)?);
    Ok(())
}

fn token(held: &Held) -> Result<Token> {
    held.token(&key("a")).context("a grant without a token")
}

/// Acquires "a", as soon as somebody answers.
async fn when_answered(service: &LockService, ttl: Duration) -> Result<Held> {
    let wish = Wish {
        ttl,
        wait: PATIENCE,
        ..wish(&["a"])
    };
    Ok(answered(service, wish).await?)
}

/// Asks again as long as nobody answers: those who have just lost their leader do not, for a moment.
async fn answered(service: &LockService, wish: Wish) -> Result<Held, LockError> {
    let began = Instant::now();
    loop {
        match service.acquire(wish.clone()).await {
            Err(LockError::Unavailable { .. } | LockError::Lost(_))
                if began.elapsed() < PATIENCE => {}
            answer => return answer,
        }
    }
}

async fn is_confirmed(held: &Held) -> Result<bool, LockError> {
    let began = Instant::now();
    loop {
        match held.confirm().await {
            Err(LockError::Unavailable { .. }) if began.elapsed() < PATIENCE => {}
            answer => return answer,
        }
    }
}
