//! What every lock must do, also one that never expires and has no token.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use doublebook::lock::{Answer, LockError, LockService, Released, Renewal, Trips, Waiting, Wish};
use tokio::task::JoinSet;

use crate::pair::{
    PATIENCE, Pair, at_once, claim, eventually, free, get, grant, is_taken, key, soon, wish,
};

/// Twelve tasks on two services count to 120 with a read, a pause and a write. A second holder loses a count. Bug 27: six
/// of them share one service, and all of them one host.
pub async fn two_holders_never_overlap(pair: &Pair) -> Result<()> {
    const ROUNDS: u64 = 10;
    let counter = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let service = if task % 2 == 0 { &pair.ana } else { &pair.ben }.clone();
        let waiting = if task % 3 == 0 {
            Waiting::Backoff
        } else {
            Waiting::Notify
        };
        tasks.spawn(count(service, waiting, counter.clone(), ROUNDS));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let counted = counter.load(Ordering::SeqCst);
    ensure!(
        counted == 12 * ROUNDS,
        "{counted} of {} counts survived",
        12 * ROUNDS
    );
    Ok(())
}

async fn count(
    service: LockService,
    waiting: Waiting,
    counter: Arc<AtomicU64>,
    rounds: u64,
) -> Result<()> {
    for _ in 0..rounds {
        let wish = Wish {
            waiting,
            wait: 3 * PATIENCE,
            ..wish(&["counter"])
        };
        let held = get(&service, wish).await?;
        let seen = counter.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_micros(rand::random_range(0..500))).await;
        counter.store(seen + 1, Ordering::SeqCst);
        drop(held);
    }
    Ok(())
}

/// A reply that was lost makes the same owner ask again: it has the lock once, and one release frees it.
pub async fn an_ask_that_is_repeated_changes_nothing(pair: &Pair) -> Result<()> {
    let claim = claim(&["a", "b"], Duration::from_secs(60));
    let first = grant(&pair.ana, &claim).await?;
    let second = grant(&pair.ana, &claim).await?;
    ensure!(
        first == second,
        "the second ask got {second:?} instead of {first:?}"
    );
    let released = free(&pair.ana, &claim).await?;
    ensure!(
        released == Released::Released,
        "the release answered {released:?}"
    );
    ensure!(
        !is_taken(&pair.ben, &["a", "b"]).await?,
        "one release did not free it"
    );
    Ok(())
}

pub async fn a_stranger_frees_nothing(pair: &Pair) -> Result<()> {
    let held = get(&pair.ana, wish(&["a"])).await?;
    let stranger = claim(&["a"], Duration::from_secs(60));
    let released = free(&pair.ben, &stranger).await?;
    ensure!(
        released == Released::NotTheOwner,
        "a stranger's release answered {released:?}"
    );
    ensure!(
        is_taken(&pair.ben, &["a"]).await?,
        "a stranger's release freed it"
    );
    held.check()?;
    Ok(())
}

pub async fn what_was_never_granted_is_not_renewed(pair: &Pair) -> Result<()> {
    let claim = claim(&["a"], Duration::from_secs(60));
    let renewal = pair.ana.system().renew(&claim).await?;
    ensure!(
        renewal == Renewal::Lost,
        "a renewal out of nothing answered {renewal:?}"
    );
    ensure!(
        !is_taken(&pair.ben, &["a"]).await?,
        "a renewal out of nothing took the lock"
    );
    Ok(())
}

pub async fn the_wait_limit_is_kept(pair: &Pair) -> Result<()> {
    let limit = Duration::from_millis(200);
    let _held = get(&pair.ana, wish(&["a"])).await?;
    for service in [&pair.ana, &pair.ben] {
        let began = Instant::now();
        let refused = service
            .acquire(Wish {
                wait: limit,
                ..wish(&["a"])
            })
            .await;
        let waited = began.elapsed();
        ensure!(
            matches!(refused, Err(LockError::Timeout { .. })),
            "{refused:?}"
        );
        ensure!(waited >= limit, "gave up after {waited:?}");
        ensure!(
            waited < 3 * (limit + Duration::from_secs(1)),
            "waited for {waited:?}"
        );
    }
    eventually("nobody waits any more", async || {
        pair.ana.waiting() + pair.ben.waiting() == 0
    })
    .await
}

pub async fn who_does_not_wait_asks_once(pair: &Pair) -> Result<()> {
    let _held = get(&pair.ana, wish(&["a"])).await?;
    for service in [&pair.ana, &pair.ben] {
        let trips = Trips::default();
        let refused = service
            .acquire(Wish {
                trips: trips.clone(),
                ..at_once(&["a"])
            })
            .await;
        ensure!(
            matches!(refused, Err(LockError::Timeout { .. })),
            "{refused:?}"
        );
        ensure!(trips.get() == 1, "{} requests", trips.get());
    }
    Ok(())
}

/// From service to service. Where releases are heard, a hand-over takes far less than the 250 ms after which a
/// waiter asks by itself. The middle one counts, so that one hiccup of the machine does not.
pub async fn a_release_lets_the_next_one_in(pair: &Pair) -> Result<()> {
    let mut held = get(&pair.ana, wish(&["a"])).await?;
    let mut handovers = Vec::new();
    for turn in 0..15 {
        let service = if turn % 2 == 0 { &pair.ben } else { &pair.ana }.clone();
        let waiter = tokio::spawn(async move { get(&service, wish(&["a"])).await });
        eventually("somebody waits", async || {
            pair.ana.waiting() + pair.ben.waiting() == 1
        })
        .await?;
        let began = Instant::now();
        held.release().await;
        held = soon("the next one is let in", waiter).await???;
        handovers.push(began.elapsed());
    }
    handovers.sort_unstable();
    let middle = handovers[handovers.len() / 2];
    println!("a hand-over takes {middle:?}");
    let heard = pair.ana.system().wakeups().is_some();
    ensure!(
        !heard || middle < Duration::from_millis(125),
        "a hand-over takes {middle:?}"
    );
    Ok(())
}

/// Futures that are dropped at random points: while they stand in line, ask, wait, or get it.
pub async fn a_future_that_is_dropped_leaves_nothing(pair: &Pair) -> Result<()> {
    let mut tasks = JoinSet::new();
    for task in 0..60 {
        let service = if task % 2 == 0 { &pair.ana } else { &pair.ben }.clone();
        let limit = Duration::from_micros(rand::random_range(0..3_000));
        tasks.spawn(async move {
            let acquired = tokio::time::timeout(limit, service.acquire(wish(&["a", "b"]))).await;
            drop(acquired);
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    let began = Instant::now();
    drop(
        get(
            &pair.ben,
            Wish {
                wait: Duration::from_secs(3),
                ..wish(&["a", "b"])
            },
        )
        .await?,
    );
    println!(
        "free {:?} after the last future was dropped",
        began.elapsed()
    );
    for service in [&pair.ana, &pair.ben] {
        ensure!(
            service.settle(PATIENCE).await,
            "something is still under way"
        );
        let left = (service.held(), service.waiting(), service.lines());
        ensure!(
            left == (0, 0, 0),
            "{left:?} are still held, waiting, in line"
        );
    }
    Ok(())
}

pub async fn a_holder_that_panics_frees_it(pair: &Pair) -> Result<()> {
    let held = get(&pair.ana, wish(&["a"])).await?;
    let holder = tokio::spawn(async move {
        let _held = held;
        // Without the panic hook, which would print it.
        std::panic::resume_unwind(Box::new("the holder fails"));
    });
    ensure!(holder.await.is_err(), "the holder did not panic");
    drop(get(&pair.ben, wish(&["a"])).await?);
    Ok(())
}

pub async fn a_holder_dropped_outside_of_a_runtime_frees_it(pair: &Pair) -> Result<()> {
    let held = get(&pair.ana, wish(&["a"])).await?;
    let dropper = std::thread::spawn(AssertUnwindSafe(move || drop(held)).0);
    ensure!(dropper.join().is_ok(), "the drop panicked");
    drop(get(&pair.ben, wish(&["a"])).await?);
    Ok(())
}

pub async fn two_keys_are_all_or_nothing(pair: &Pair) -> Result<()> {
    let _held = get(&pair.ana, wish(&["b"])).await?;
    let both = claim(&["a", "b", "c"], Duration::from_secs(60));
    match pair.ben.system().ask(&both).await? {
        Answer::Refused { key: refused, .. } => ensure!(refused == key("b"), "{refused} refused"),
        Answer::Granted(_) => bail!("b was granted twice"),
    }
    ensure!(!is_taken(&pair.ana, &["a"]).await?, "a refused ask kept a");
    ensure!(!is_taken(&pair.ana, &["c"]).await?, "a refused ask kept c");
    Ok(())
}

pub async fn the_same_key_twice_is_one_key(pair: &Pair) -> Result<()> {
    let held = get(&pair.ana, at_once(&["a", "a"])).await?;
    ensure!(held.tokens().iter().count() == 1, "{:?}", held.tokens());
    Ok(())
}

pub async fn opposite_orders_never_deadlock(pair: &Pair) -> Result<()> {
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let service = if task % 2 == 0 { &pair.ana } else { &pair.ben }.clone();
        let wanted = if task % 4 < 2 { ["a", "b"] } else { ["b", "a"] };
        tasks.spawn(async move {
            for _ in 0..5 {
                drop(
                    get(
                        &service,
                        Wish {
                            wait: 3 * PATIENCE,
                            ..wish(&wanted)
                        },
                    )
                    .await?,
                );
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

pub async fn a_key_is_not_its_prefix(pair: &Pair) -> Result<()> {
    let _held = get(&pair.ana, wish(&["a"])).await?;
    for other in ["ab", "A", "a ", "a|b", "é"] {
        ensure!(
            !is_taken(&pair.ben, &[other]).await?,
            "{other:?} is locked with \"a\""
        );
    }
    Ok(())
}

pub async fn hundreds_of_keys_leave_nothing(pair: &Pair) -> Result<()> {
    let mut tasks = JoinSet::new();
    for number in 0..300 {
        let service = if number % 2 == 0 {
            &pair.ana
        } else {
            &pair.ben
        }
        .clone();
        tasks.spawn(async move {
            let mine = format!("key {number}");
            get(&service, wish(&[&mine])).await?.release().await;
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    for service in [&pair.ana, &pair.ben] {
        ensure!(
            service.settle(PATIENCE).await,
            "something is still under way"
        );
        let listened = service.system().wakeups().map_or(0, |hub| hub.keys());
        let left = (service.held(), service.waiting(), service.lines(), listened);
        ensure!(
            left == (0, 0, 0, 0),
            "{left:?} are still held, waiting, in line, listened for"
        );
    }
    for number in 0..300 {
        let one = format!("key {number}");
        ensure!(
            !is_taken(&pair.ben, &[&one]).await?,
            "{one:?} is still taken"
        );
    }
    Ok(())
}
