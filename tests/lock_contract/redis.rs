//! Redis keeps the contract, and what only Redis can do wrong.

use std::{
    io::Write,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{
    Claim, LockError, LockService, LockSystem as _, ReleaseOutcome, Token, Trips, Waiting, Wish,
    systems::Redis,
};
use tokio::task::JoinSet;

use crate::{
    forwarder::Forwarder,
    pair::{
        LONG, PATIENCE, Pair, SHORT, at_once, claim, eventually, get, is_confirmed,
        is_renewed_in_time, is_taken, is_told_in_time, is_unavailable, key, soon, wish, work_again,
    },
    redis_server::RedisServer,
};

pub async fn connect() -> Result<(Pair, RedisServer)> {
    let server = RedisServer::start().await?;
    let pair = Pair::new(Redis::open(&server.url())?, Redis::open(&server.url())?);
    Ok((pair, server))
}

crate::every_lock!(connect());
crate::leases!(connect());
crate::blind_releases!(connect());

/// Bug 43: a cluster refuses a script whose keys are in different slots. All that a script is given has one hash tag,
/// and all that it tells goes to a channel, which every node has.
mod in_a_cluster {
    use super::*;

    async fn connect() -> Result<(Pair, RedisServer)> {
        let server = RedisServer::start_as_a_cluster().await?;
        let pair = Pair::new(Redis::open(&server.url())?, Redis::open(&server.url())?);
        Ok((pair, server))
    }

    crate::cases!(
        connect(),
        every_lock: two_holders_never_overlap,
        an_ask_that_is_repeated_changes_nothing,
        a_release_lets_the_next_one_in,
        two_keys_are_all_or_nothing,
        opposite_orders_never_deadlock,
        hundreds_of_keys_leave_nothing,
    );
    crate::cases!(connect(), leases: renewal_keeps_it_for_ten_lease_times);
}

async fn next_token(service: &LockService) -> Result<Token> {
    let held = get(service, wish(&["a"])).await?;
    let token = held.token(&key("a")).context("no token")?;
    held.release().await;
    Ok(token)
}

#[tokio::test]
async fn tokens_rise_after_redis_lost_its_memory() -> Result<()> {
    let (pair, mut server) = connect().await?;
    let before = next_token(&pair.ana).await?;
    server.run::<()>(&["FLUSHALL"]).await?;
    let after_flush = next_token(&pair.ben).await?;
    server.kill()?;
    server.start_again().await?;
    let after_restart = next_token(&pair.ana).await?;
    ensure!(
        before < after_flush && after_flush < after_restart,
        "{before} {after_flush} {after_restart}"
    );
    Ok(())
}

/// Lua would round a number of more than 14 digits when it turns it into a text.
#[tokio::test]
async fn large_tokens_keep_all_their_digits() -> Result<()> {
    let (pair, server) = connect().await?;
    server
        .run::<()>(&["SET", "{doublebook}:token", "8123456789012345"])
        .await?;
    ensure!(next_token(&pair.ana).await?.get() == 8_123_456_789_012_346);
    ensure!(next_token(&pair.ben).await?.get() == 8_123_456_789_012_347);
    Ok(())
}

#[tokio::test]
async fn the_counter_never_expires() -> Result<()> {
    let (pair, server) = connect().await?;
    next_token(&pair.ana).await?;
    let rest: i64 = server.run(&["PTTL", "{doublebook}:token"]).await?;
    ensure!(rest == -1, "the counter ends in {rest} ms");
    Ok(())
}

#[tokio::test]
async fn scripts_are_loaded_again_when_redis_forgot_them() -> Result<()> {
    let (pair, server) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    server.run::<()>(&["SCRIPT", "FLUSH"]).await?;
    ensure!(is_confirmed(&held).await?);
    server.run::<()>(&["SCRIPT", "FLUSH"]).await?;
    ensure!(held.release().await == ReleaseOutcome::Released);
    server.run::<()>(&["SCRIPT", "FLUSH"]).await?;
    drop(get(&pair.ben, at_once(&["a"])).await?);
    Ok(())
}

#[tokio::test]
async fn a_redis_that_is_down_is_unavailable_at_once_and_works_when_it_is_back() -> Result<()> {
    let (pair, mut server) = connect().await?;
    let held = get(
        &pair.ana,
        Wish {
            ttl: SHORT,
            ..wish(&["a"])
        },
    )
    .await?;
    server.kill()?;
    for service in [&pair.ana, &pair.ben] {
        is_told_in_time("down", service, wish(&["b"]), Duration::from_secs(3)).await?;
    }
    soon("the own timer tells the loss", held.lost()).await?;

    server.start_again().await?;
    work_again([&pair.ana, &pair.ben], &["b"]).await
}

#[tokio::test]
async fn a_redis_that_was_never_there_does_not_keep_a_program_from_starting() -> Result<()> {
    let service = LockService::new(std::sync::Arc::new(Redis::open("redis://127.0.0.1:1")?));
    let refused = service.acquire(wish(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    Ok(())
}

#[tokio::test]
async fn who_waits_is_told_that_redis_went_down() -> Result<()> {
    let (pair, mut server) = connect().await?;
    let _held = get(&pair.ana, wish(&["a"])).await?;
    let waiter = tokio::spawn({
        let ben = pair.ben.clone();
        async move { ben.acquire(wish(&["a"])).await }
    });
    eventually("somebody waits", async || pair.ben.waiting() == 1).await?;
    server.kill()?;
    let refused = soon("the waiter is told", waiter).await??;
    ensure!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    Ok(())
}

/// The first request on a connection that was cut is sent again: nobody sees an error.
#[tokio::test]
async fn a_cut_connection_is_made_anew() -> Result<()> {
    let (pair, server) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    let made = pair.ana.system().connections();
    server
        .run::<()>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        .await?;
    ensure!(is_confirmed(&held).await?);
    server
        .run::<()>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        .await?;
    drop(get(&pair.ana, at_once(&["b"])).await?);
    ensure!(
        pair.ana.system().connections() == made + 2,
        "new connections are not counted"
    );
    Ok(())
}

/// Else many who are hasty, one after the other, would never get a connection to a server that is far away.
#[tokio::test]
async fn a_connection_that_somebody_had_no_time_for_is_made_for_those_behind() -> Result<()> {
    let server = RedisServer::start().await?;
    let forwarder = Forwarder::start(server.address()).await?;
    let redis = Redis::open(&format!("redis://{}", forwarder.address()))?;
    forwarder.dark(true);
    let hasty = Claim {
        patience: Duration::from_millis(20),
        ..claim(&["a"], LONG)
    };
    ensure!(is_unavailable(&redis.ask(&hasty).await));
    forwarder.dark(false);
    eventually("a connection is made", async || redis.connections() == 1).await
}

/// Its requests are never answered and never refused, as behind a firewall that forgot it.
#[tokio::test]
async fn a_connection_that_hangs_is_replaced_before_the_lease_is_over() -> Result<()> {
    let server = RedisServer::start().await?;
    let forwarder = Forwarder::start(server.address()).await?;
    let redis = Redis::open(&format!("redis://{}", forwarder.address()))?;
    let service = LockService::new(std::sync::Arc::new(redis));
    let ttl = Duration::from_secs(8);
    let held = get(
        &service,
        Wish {
            ttl,
            ..wish(&["a"])
        },
    )
    .await?;
    forwarder.hang();
    is_renewed_in_time(&held).await?;
    forwarder.hang();
    ensure!(
        held.release().await == ReleaseOutcome::Released,
        "the release hangs"
    );
    ensure!(
        service.system().connections() >= 3,
        "{} connections",
        service.system().connections()
    );
    Ok(())
}

/// With a lease of a minute, only a wake-up or a poll lets a waiter in, and a poll is a request.
#[tokio::test]
async fn a_woken_waiter_asks_few_times() -> Result<()> {
    let (pair, _server) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    let trips = Trips::default();
    let waiter = tokio::spawn({
        let (ben, trips) = (pair.ben.clone(), trips.clone());
        async move {
            ben.acquire(Wish {
                trips,
                waiting: Waiting::Notify,
                ..wish(&["a"])
            })
            .await
        }
    });
    eventually("the waiter has asked", async || trips.get() > 0).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    held.release().await;
    drop(soon("the waiter is let in", waiter).await???);
    ensure!(trips.get() <= 10, "{} requests", trips.get());
    Ok(())
}

#[tokio::test]
async fn a_key_of_another_type_spoils_only_itself() -> Result<()> {
    let (pair, server) = connect().await?;
    server
        .run::<()>(&["HSET", "{doublebook}:lock:a", "field", "value"])
        .await?;
    server
        .run::<()>(&["SET", "{doublebook}:lock:b", "something else"])
        .await?;
    for spoilt in ["a", "b"] {
        let refused = pair.ana.acquire(wish(&[spoilt])).await;
        let Err(LockError::Unavailable { reason }) = refused else {
            anyhow::bail!("{refused:?}");
        };
        ensure!(
            reason.contains(&format!("{{doublebook}}:lock:{spoilt}")),
            "{reason}"
        );
    }
    drop(get(&pair.ana, at_once(&["c"])).await?);
    Ok(())
}

/// Neither "acquired" nor "taken": it may be behind.
#[tokio::test]
async fn a_redis_that_became_read_only_is_unavailable() -> Result<()> {
    let (pair, server) = connect().await?;
    let held = get(&pair.ana, wish(&["taken"])).await?;
    server.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await?;
    for wanted in ["taken", "free"] {
        let refused = pair.ben.acquire(wish(&[wanted])).await;
        ensure!(
            matches!(refused, Err(LockError::Unavailable { .. })),
            "{refused:?}"
        );
    }
    server.run::<()>(&["REPLICAOF", "NO", "ONE"]).await?;
    held.release().await;
    drop(get(&pair.ben, at_once(&["taken"])).await?);
    Ok(())
}

#[tokio::test]
async fn both_replicas_see_the_same_server_and_notice_another_one() -> Result<()> {
    let (pair, server) = connect().await?;
    let ana = pair
        .ana
        .system()
        .server("drawn by ana")
        .await?
        .context("no id")?;
    let ben = pair
        .ben
        .system()
        .server("drawn by ben")
        .await?
        .context("no id")?;
    ensure!(ana.id == "drawn by ana" && ana == ben, "{ana:?} {ben:?}");
    ensure!(server.url().ends_with(&ana.address), "{}", ana.address);
    let (other, _other_server) = connect().await?;
    let carol = other
        .ana
        .system()
        .server("drawn by carol")
        .await?
        .context("no id")?;
    ensure!(carol.id == "drawn by carol", "{carol:?}");
    Ok(())
}

/// Redis would then evict the counter and the locks when its memory is full.
#[tokio::test]
async fn an_evicting_policy_is_warned_of_once_for_each_connection() -> Result<()> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    let _collected = tracing::subscriber::set_default(subscriber);
    for (policy, warnings) in [("allkeys-lru", 1), ("volatile-lru", 0), ("noeviction", 0)] {
        let (pair, server) = connect().await?;
        server
            .run::<()>(&["CONFIG", "SET", "maxmemory-policy", policy])
            .await?;
        log.clear();
        for _ in 0..3 {
            next_token(&pair.ana).await?;
        }
        // The question was sent before the first script, so its answer has come before that of the last one.
        tokio::task::yield_now().await;
        eventually("the warning is there", async || {
            log.count("maxmemory-policy") == warnings
        })
        .await?;
    }
    Ok(())
}

/// What was logged meanwhile.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("nobody panics while it is locked")
    }

    fn clear(&self) {
        self.text().clear();
    }

    fn count(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.text()).matches(words).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_address_never_holds_the_password() -> Result<()> {
    let redis = Redis::open("redis://someone:secret@127.0.0.1:1/3")?;
    let error = redis
        .ask(&claim(&["a"], LONG))
        .await
        .expect_err("nobody listens there");
    ensure!(!error.to_string().contains("secret"), "{error}");
    let bad = Redis::open("http://someone:secret@127.0.0.1").expect_err("no Redis URL");
    ensure!(!bad.to_string().contains("secret"), "{bad}");
    Ok(())
}

/// Ten thousand would take too long here; what is asked is whether a renewal ever comes after a release.
#[tokio::test]
async fn a_thousand_short_holds_leave_no_key() -> Result<()> {
    let (pair, server) = connect().await?;
    for _ in 0..1_000 {
        let held = get(
            &pair.ana,
            Wish {
                ttl: Duration::from_millis(30),
                ..wish(&["a"])
            },
        )
        .await?;
        tokio::task::yield_now().await;
        held.release().await;
    }
    ensure!(pair.ana.settle(PATIENCE).await);
    let left: usize = server.run(&["EXISTS", "{doublebook}:lock:a"]).await?;
    ensure!(
        left == 0 && !is_taken(&pair.ben, &["a"]).await?,
        "a renewal came after the release"
    );
    Ok(())
}

/// How many locks are used once; `--soak` asks for more.
const ONCE: usize = 10_000;

/// Bug 34: locks that are never used again cost a replica nothing, and Redis one counter for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tens_of_thousands_of_locks_leave_one_counter() -> Result<()> {
    const TASKS: usize = 32;
    let locks = match std::env::var("DOUBLEBOOK_SOAK").as_deref() {
        Ok("" | "0") | Err(_) => ONCE,
        Ok(_) => ONCE * 10,
    };
    let (pair, server) = connect().await?;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let service = if task % 2 == 0 { &pair.ana } else { &pair.ben }.clone();
        tasks.spawn(async move {
            for number in (task..locks).step_by(TASKS) {
                let name = format!("lock {number}");
                get(&service, wish(&[&name])).await?.release().await;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    println!("{locks} locks in {:?}", began.elapsed());
    for service in [&pair.ana, &pair.ben] {
        ensure!(service.settle(PATIENCE).await);
        let heard = service.system().wakeups().map(|hub| hub.keys());
        let left = (service.held(), service.waiting(), service.lines(), heard);
        ensure!(left == (0, 0, 0, Some(0)), "{left:?}");
    }
    let left: Vec<String> = server.run(&["KEYS", "*"]).await?;
    ensure!(left == ["{doublebook}:token"], "{left:?}");
    Ok(())
}
