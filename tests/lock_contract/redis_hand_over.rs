//! How Redis hands a lock over: to the first one who waits and lives, and to nobody else meanwhile.
//!
//! Most cases speak to the lock system itself, step by step, and look at the server in between, so that nothing here
//! hangs on time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use doublebook::lock::{
    Answer, Claim, LockError, LockService, LockSystem as _, ReleaseMode, ReleaseOutcome, Renewal,
    Waiting, Wish, systems::Redis,
};
use tokio::task::JoinSet;

use crate::{
    pair::{
        LONG, PATIENCE, Pair, at_once, claim, eventually, free, get, grant, is_taken, key, keys,
        soon, wish,
    },
    redis::connect,
    redis_server::RedisServer,
};

/// Who asks step by step, and listens as a replica does.
struct Waiter {
    redis: Redis,
    claim: Claim,
}

impl Waiter {
    /// Asks for the keys and is refused by the given one.
    async fn refused_by(server: &RedisServer, wanted: &[&str], refusing: &str) -> Result<Self> {
        let waiter = Self {
            redis: Redis::open(&server.url())?,
            claim: Claim {
                waits: true,
                ..claim(wanted, LONG)
            },
        };
        let hub = waiter.redis.wakeups().context("no wake-ups")?;
        let listener = hub.listen(&waiter.claim.keys);
        soon("the subscription is there", listener.woken()).await?;
        waiter.is_refused_by(refusing).await?;
        Ok(waiter)
    }

    async fn is_refused_by(&self, refusing: &str) -> Result<()> {
        match self.redis.ask(&self.claim).await? {
            Answer::Refused { key: by, .. } if by == key(refusing) => Ok(()),
            other => bail!("{other:?} instead of a refusal by {refusing:?}"),
        }
    }

    async fn is_granted(&self) -> Result<()> {
        match self.redis.ask(&self.claim).await? {
            Answer::Granted(_) => Ok(()),
            refused => bail!("{refused:?}"),
        }
    }

    async fn gives_up(&self) -> Result<()> {
        let mode = ReleaseMode::OwnerChecked;
        self.redis.release(&self.claim, mode).await?;
        Ok(())
    }

    /// Whether the lock is reserved for it.
    async fn has_reserved(&self, server: &RedisServer, lock: &str) -> Result<bool> {
        Ok(value(server, lock).await? == Some(self.claim.owner.to_string()))
    }
}

/// What Redis holds under the name of a lock.
async fn value(server: &RedisServer, lock: &str) -> Result<Option<String>> {
    let lock = format!("{{doublebook}}:lock:{lock}");
    server.run(&["GET", &lock]).await
}

/// Who waits for a lock, in order.
async fn waiters(server: &RedisServer, lock: &str) -> Result<Vec<String>> {
    let waiters = format!("{{doublebook}}:waiters:{lock}");
    server.run(&["ZRANGE", &waiters, "0", "-1"]).await
}

/// Nothing is left but the one counter.
async fn nothing_is_left(server: &RedisServer) -> Result<()> {
    eventually("nothing is left at Redis", async || {
        let left = server.run::<Vec<String>>(&["KEYS", "*"]).await;
        matches!(left.as_deref(), Ok([]) | Ok([_]))
    })
    .await?;
    let left: Vec<String> = server.run(&["KEYS", "*"]).await?;
    ensure!(
        left.is_empty() || left == ["{doublebook}:token"],
        "{left:?}"
    );
    Ok(())
}

/// How long a reservation lasts.
const CLAIM_TIME: Duration = Duration::from_millis(300);

/// Tells a scenario whose steps fit into one reservation many times over; again, when the machine stood still in it.
async fn in_one_go(scenario: impl AsyncFn(&Pair, &RedisServer) -> Result<()>) -> Result<()> {
    for _ in 0..5 {
        let (pair, server) = connect().await?;
        let began = Instant::now();
        let told = scenario(&pair, &server).await;
        if told.is_ok() || began.elapsed() < CLAIM_TIME {
            return told;
        }
        println!("after {:?}: {told:?}", began.elapsed());
    }
    bail!("it was never told in one go");
}

#[tokio::test]
async fn a_release_reserves_the_lock_for_the_first_waiter_and_tells_it() -> Result<()> {
    in_one_go(async |pair, server| {
        let holder = claim(&["a"], LONG);
        grant(&pair.ana, &holder).await?;
        let first = Waiter::refused_by(server, &["a"], "a").await?;
        let second = Waiter::refused_by(server, &["a"], "a").await?;
        // Asking again changes nothing about the order.
        first.is_refused_by("a").await?;
        ensure!(waiters(server, "a").await?.len() == 2);

        let listener = first
            .redis
            .wakeups()
            .context("no wake-ups")?
            .listen(&keys(&["a"]));
        free(&pair.ana, &holder).await?;
        soon("the first one is told", listener.woken()).await?;
        ensure!(first.has_reserved(server, "a").await?);
        ensure!(waiters(server, "a").await?.len() == 1);
        ensure!(is_taken(&pair.ana, &["a"]).await?, "somebody barged in");
        second.is_refused_by("a").await?;
        ensure!(
            first.redis.renew(&first.claim).await? == Renewal::Lost,
            "a reservation was renewed"
        );

        first.is_granted().await?;
        first.is_granted().await?;
        first.gives_up().await?;
        ensure!(second.has_reserved(server, "a").await?);
        second.is_granted().await?;
        second.gives_up().await?;
        nothing_is_left(server).await
    })
    .await
}

/// Bug 18: it would stand in the way for good.
#[tokio::test]
async fn a_dead_waiter_is_skipped() -> Result<()> {
    in_one_go(async |pair, server| {
        let holder = claim(&["a"], LONG);
        grant(&pair.ana, &holder).await?;
        for _ in 0..3 {
            drop(Waiter::refused_by(server, &["a"], "a").await?);
        }
        let living = Waiter::refused_by(server, &["a"], "a").await?;
        eventually("Redis notices who is gone", async || {
            let channels = server.run::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await;
            channels.is_ok_and(|channels| channels.len() == 1)
        })
        .await?;
        ensure!(waiters(server, "a").await?.len() == 4);
        free(&pair.ana, &holder).await?;
        ensure!(living.has_reserved(server, "a").await?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_lock_that_only_dead_ones_wait_for_is_free() -> Result<()> {
    let (pair, server) = connect().await?;
    let holder = claim(&["a"], LONG);
    grant(&pair.ana, &holder).await?;
    drop(Waiter::refused_by(&server, &["a"], "a").await?);
    eventually("Redis notices who is gone", async || {
        let channels = server.run::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await;
        channels.is_ok_and(|channels| channels.is_empty())
    })
    .await?;
    free(&pair.ana, &holder).await?;
    nothing_is_left(&server).await
}

/// Bug 18: Redis cannot tell a frozen replica from a living one, so its reservation is short.
#[tokio::test]
async fn a_frozen_waiter_loses_its_reservation_and_the_next_one_gets_the_lock() -> Result<()> {
    let (pair, server) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    let frozen = Waiter::refused_by(&server, &["a"], "a").await?;
    let waiting = tokio::spawn({
        let ben = pair.ben.clone();
        async move { get(&ben, wish(&["a"])).await }
    });
    eventually("ben waits, too", async || {
        waiters(&server, "a").await.is_ok_and(|all| all.len() == 2)
    })
    .await?;
    let began = Instant::now();
    held.release().await;
    let held = soon("ben gets it", waiting).await???;
    println!("a frozen waiter cost {:?}", began.elapsed());
    frozen.is_refused_by("a").await?;
    frozen.gives_up().await?;
    held.release().await;
    nothing_is_left(&server).await
}

#[tokio::test]
async fn a_claim_that_another_key_refuses_passes_its_reservation_on() -> Result<()> {
    in_one_go(async |pair, server| {
        let (first, second) = (claim(&["a"], LONG), claim(&["b"], LONG));
        grant(&pair.ana, &first).await?;
        grant(&pair.ana, &second).await?;
        let both = Waiter::refused_by(server, &["a", "b"], "a").await?;
        let one = Waiter::refused_by(server, &["a"], "a").await?;

        free(&pair.ana, &first).await?;
        ensure!(both.has_reserved(server, "a").await?);
        both.is_refused_by("b").await?;
        ensure!(one.has_reserved(server, "a").await?, "it was not passed on");
        ensure!(waiters(server, "a").await?.is_empty());
        ensure!(waiters(server, "b").await?.len() == 1);

        one.is_granted().await?;
        free(&pair.ana, &second).await?;
        ensure!(both.has_reserved(server, "b").await?);
        both.is_refused_by("a").await?;
        ensure!(value(server, "b").await?.is_none(), "nobody waits for it");
        ensure!(waiters(server, "b").await?.is_empty());

        one.gives_up().await?;
        both.is_granted().await?;
        both.gives_up().await?;
        nothing_is_left(server).await
    })
    .await
}

/// Bug 15: neither its place in the line nor its reservation may stay behind.
#[tokio::test]
async fn who_gives_up_leaves_its_place_and_passes_its_reservation_on() -> Result<()> {
    in_one_go(async |pair, server| {
        let holder = claim(&["a"], LONG);
        grant(&pair.ana, &holder).await?;
        let first = Waiter::refused_by(server, &["a"], "a").await?;
        let second = Waiter::refused_by(server, &["a"], "a").await?;
        let third = Waiter::refused_by(server, &["a"], "a").await?;
        first.gives_up().await?;
        ensure!(waiters(server, "a").await?.len() == 2);
        free(&pair.ana, &holder).await?;
        ensure!(second.has_reserved(server, "a").await?);
        second.gives_up().await?;
        ensure!(third.has_reserved(server, "a").await?);
        third.gives_up().await?;
        nothing_is_left(server).await
    })
    .await
}

/// Who does not listen would let a reservation lapse each time.
#[tokio::test]
async fn who_polls_and_who_does_not_wait_stand_in_no_line() -> Result<()> {
    let (pair, server) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    let refused = pair.ben.acquire(at_once(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Timeout { .. })),
        "{refused:?}"
    );
    let polling = Wish {
        waiting: Waiting::Backoff,
        wait: Duration::from_secs(2),
        ..wish(&["a"])
    };
    let trips = polling.trips.clone();
    let acquiring = pair.ben.acquire(polling);
    let looking = async {
        eventually("it has polled", async || trips.get() > 3).await?;
        waiters(&server, "a").await
    };
    let (refused, seen) = tokio::join!(acquiring, looking);
    ensure!(
        matches!(refused, Err(LockError::Timeout { .. })),
        "{refused:?}"
    );
    ensure!(seen?.is_empty(), "who polls stands in line");
    held.release().await;
    nothing_is_left(&server).await
}

/// Nothing piles up, also when nobody ever frees the lock.
#[tokio::test]
async fn those_who_wait_are_limited_in_number_and_forgotten_in_time() -> Result<()> {
    let (pair, server) = connect().await?;
    grant(&pair.ana, &claim(&["a"], LONG)).await?;
    for _ in 0..1_010 {
        let waiting = Claim {
            waits: true,
            ..claim(&["a"], LONG)
        };
        pair.ana.system().ask(&waiting).await?;
    }
    ensure!(waiters(&server, "a").await?.len() == 1_000);
    let rest: i64 = server.run(&["PTTL", "{doublebook}:waiters:a"]).await?;
    ensure!((1..=10_000).contains(&rest), "forgotten in {rest} ms");
    Ok(())
}

#[tokio::test]
async fn a_lease_that_runs_out_makes_nobody_wait_for_its_waiters() -> Result<()> {
    let (pair, server) = connect().await?;
    grant(&pair.ana, &claim(&["a"], Duration::from_secs(3))).await?;
    let waiter = Waiter::refused_by(&server, &["a"], "a").await?;
    let held = get(&pair.ben, wish(&["a"])).await?;
    waiter.is_refused_by("a").await?;
    held.release().await;
    waiter.is_granted().await?;
    ensure!(waiters(&server, "a").await?.is_empty());
    Ok(())
}

/// Each of the two services has some tasks that take the lock again and again; says how often each service got it.
async fn crowd(pair: &Pair, tasks: usize, grants: usize) -> Result<[usize; 2]> {
    let left = Arc::new(AtomicUsize::new(grants));
    let mut crowd = JoinSet::new();
    for task in 0..2 * tasks {
        let side = task % 2;
        let service = if side == 0 { &pair.ana } else { &pair.ben }.clone();
        crowd.spawn(take_again_and_again(side, service, left.clone()));
    }
    let mut counted = [0; 2];
    while let Some(ended) = crowd.join_next().await {
        let (side, got) = ended??;
        counted[side] += got;
    }
    Ok(counted)
}

async fn take_again_and_again(
    side: usize,
    service: LockService,
    left: Arc<AtomicUsize>,
) -> Result<(usize, usize)> {
    let mut got = 0;
    loop {
        let wish = Wish {
            wait: 3 * PATIENCE,
            ..wish(&["hot"])
        };
        let held = get(&service, wish).await?;
        let last = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(held);
        if last.is_err() {
            return Ok((side, got));
        }
        got += 1;
    }
}

/// "Publish, then everybody tries" gave one of two replicas 7 % of the grants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_two_replicas_gets_its_share() -> Result<()> {
    let (pair, server) = connect().await?;
    let mut shares = Vec::new();
    // Whose thread stands still for a moment gets less meanwhile; but not three times.
    while shares.len() < 3 {
        let [ana, ben] = crowd(&pair, 8, 400).await?;
        println!("{ana} and {ben} of 400 grants");
        ensure!(ana + ben == 400);
        shares.push(ana);
        if (160..=240).contains(&ana) {
            break;
        }
    }
    let last = shares.pop().unwrap_or_default();
    ensure!(
        (160..=240).contains(&last),
        "{last} of 400 after {shares:?}"
    );
    ensure!(pair.ana.settle(PATIENCE).await && pair.ben.settle(PATIENCE).await);
    nothing_is_left(&server).await
}

/// Three in the long run: the ask that is granted, the ask of the next one in line behind it, and the release. A slow
/// machine adds some that ask by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_takes_as_many_commands_with_many_waiters_as_with_few() -> Result<()> {
    for tasks in [2, 16] {
        let (pair, server) = connect().await?;
        crowd(&pair, tasks, 200).await?;
        let scripts = calls(&server, "evalsha").await? as f64 / 200.0;
        println!(
            "{scripts:.2} scripts for each grant with {} waiters",
            2 * tasks
        );
        ensure!(scripts < 5.0, "{scripts:.2} scripts for each grant");
    }
    Ok(())
}

/// How often Redis has carried out a command.
async fn calls(server: &RedisServer, command: &str) -> Result<u64> {
    let stats: String = server.run(&["INFO", "commandstats"]).await?;
    let line = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|stat| stat.strip_prefix(&line));
    let calls = line.and_then(|rest| rest.split(',').next());
    Ok(calls.context("it was never called")?.parse()?)
}

/// Bug 17: whatever Redis forgets meanwhile, nobody waits for good, and nothing stays behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_comes_through_when_redis_forgets_or_cuts_connections() -> Result<()> {
    let (pair, server) = connect().await?;
    let disturbing = async {
        for disturbance in [
            &["FLUSHALL"][..],
            &["SCRIPT", "FLUSH"],
            &["CLIENT", "KILL", "TYPE", "pubsub"],
            &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        ]
        .repeat(3)
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.run::<redis::Value>(disturbance).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let (counted, disturbed) = tokio::join!(crowd(&pair, 4, 300), disturbing);
    disturbed?;
    println!("{:?} grants", counted?);
    ensure!(pair.ana.settle(PATIENCE).await && pair.ben.settle(PATIENCE).await);
    nothing_is_left(&server).await
}

/// Bugs 15 and 20: at random points, also while a lock is reserved for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn futures_that_are_dropped_leave_nothing_at_redis() -> Result<()> {
    let (pair, server) = connect().await?;
    let mut tasks = JoinSet::new();
    for task in 0..200 {
        let service = if task % 2 == 0 { &pair.ana } else { &pair.ben }.clone();
        let limit = Duration::from_micros(rand::random_range(0..30_000));
        let wanted: &[&str] = [&["a", "b"][..], &["a"], &["b"]][task % 3];
        tasks.spawn(async move {
            let _ = tokio::time::timeout(limit, service.acquire(wish(wanted))).await;
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    ensure!(pair.ana.settle(PATIENCE).await && pair.ben.settle(PATIENCE).await);
    nothing_is_left(&server).await
}

/// Bug 17: the poll is too slow to be what wakes the waiter here: it is heard at the hub itself.
#[tokio::test]
async fn a_waiter_is_told_also_after_its_subscription_was_cut() -> Result<()> {
    let (pair, server) = connect().await?;
    let waiter = {
        let holder = claim(&["a"], LONG);
        grant(&pair.ana, &holder).await?;
        let waiter = Waiter::refused_by(&server, &["a"], "a").await?;
        free(&pair.ana, &holder).await?;
        waiter.gives_up().await?;
        waiter
    };
    let listener = waiter
        .redis
        .wakeups()
        .context("no wake-ups")?
        .listen(&keys(&["a"]));
    for _ in 0..3 {
        server
            .run::<()>(&["CLIENT", "KILL", "TYPE", "pubsub"])
            .await?;
        soon("the subscription is there again", listener.woken()).await?;
        let held = get(&pair.ana, wish(&["a"])).await?;
        waiter.is_refused_by("a").await?;
        ensure!(held.release().await == ReleaseOutcome::Released);
        soon("it is told", listener.woken()).await?;
        waiter.is_granted().await?;
        waiter.gives_up().await?;
    }
    Ok(())
}
