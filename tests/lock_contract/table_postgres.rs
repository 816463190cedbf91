//! The table on PostgreSQL keeps the contract, and tells who waits, and only then.

use std::{
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use doublebook::{
    database::Database,
    lock::{
        Answer, Claim, LockError, LockService, Token, Wish,
        systems::{
            Table, TableDatabase,
            table::{POSTGRES_DDL, POSTGRES_WAITERS_DDL},
        },
    },
};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{
    forwarder::Forwarder,
    pair::{
        LONG, PATIENCE, Pair, SHORT, at_once, claim, eventually, free, get, grant, is_taken, key,
        keys, soon, wish,
    },
    postgres_server,
};

/// Two pools on one database, as two replicas have. Kept: a connection to look at it.
async fn connect() -> Result<(Pair, PgPool)> {
    connect_to(&postgres_server::database().await?).await
}

async fn connect_to(url: &str) -> Result<(Pair, PgPool)> {
    let looking = open(url).await?;
    sqlx::raw_sql(POSTGRES_DDL).execute(&looking).await?;
    sqlx::raw_sql(POSTGRES_WAITERS_DDL)
        .execute(&looking)
        .await?;
    let table = async || anyhow::Ok(Table::new(TableDatabase::Postgres(open(url).await?)));
    Ok((Pair::new(table().await?, table().await?), looking))
}

async fn open(url: &str) -> Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(8);
    Ok(pool.connect(url).await?)
}

crate::every_lock!(connect());
crate::leases!(connect());
crate::blind_releases!(connect());

/// Asks as a waiter does, and is refused.
async fn is_refused(service: &LockService, wanted: &[&str]) -> Result<Option<Duration>> {
    let waiting = Claim {
        waits: true,
        ..claim(wanted, LONG)
    };
    match service.system().ask(&waiting).await? {
        Answer::Refused { retry_in, .. } => Ok(retry_in),
        Answer::Granted(_) => anyhow::bail!("{wanted:?} should be taken"),
    }
}

async fn is_marked(looking: &PgPool) -> Result<bool> {
    Ok(
        sqlx::query_scalar("SELECT waited_for FROM lock_lease WHERE lock_key = 'a'")
            .fetch_one(looking)
            .await?,
    )
}

/// How many connections listen.
async fn listening(looking: &PgPool) -> Result<i64> {
    let listening = "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    Ok(sqlx::query_scalar(listening).fetch_one(looking).await?)
}

#[tokio::test]
async fn a_release_notifies_only_when_somebody_waits() -> Result<()> {
    let (pair, looking) = connect().await?;
    let mut heard = PgListener::connect_with(&looking).await?;
    heard.listen("lock_lease_freed").await?;

    let unwanted = claim(&["a"], LONG);
    grant(&pair.ana, &unwanted).await?;
    ensure!(
        is_taken(&pair.ben, &["a"]).await?,
        "who does not wait marks nothing"
    );
    free(&pair.ana, &unwanted).await?;
    let wanted = claim(&["a"], LONG);
    grant(&pair.ana, &wanted).await?;
    is_refused(&pair.ben, &["a"]).await?;
    ensure!(is_marked(&looking).await?);
    free(&pair.ana, &wanted).await?;
    sqlx::query("SELECT pg_notify('lock_lease_freed', 'the end')")
        .execute(&looking)
        .await?;

    let first = soon("the release is heard", heard.recv()).await??;
    let second = soon("the end is heard", heard.recv()).await??;
    ensure!((first.payload(), second.payload()) == ("a", "the end"));

    grant(&pair.ben, &claim(&["a"], LONG)).await?;
    ensure!(
        !is_marked(&looking).await?,
        "the next grant leaves the mark"
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_tells_how_long_the_lease_still_lasts() -> Result<()> {
    let (pair, _looking) = connect().await?;
    grant(&pair.ana, &claim(&["b"], LONG)).await?;
    let rest = is_refused(&pair.ben, &["a", "b"])
        .await?
        .context("not known")?;
    ensure!(rest > LONG / 2 && rest <= LONG, "{rest:?}");
    ensure!(!is_taken(&pair.ana, &["a"]).await?, "a refused ask kept a");
    Ok(())
}

/// Bug 49: the caller's transaction is open, and its `now()` is older than a lease lasts; and the table's own statement has
/// to wait for as long. The lease has all its time nevertheless, and the caller's rollback does not undo it.
#[tokio::test]
async fn neither_a_wait_nor_the_callers_transaction_shortens_a_lease() -> Result<()> {
    const TTL: Duration = Duration::from_secs(1);
    const OLDER: &str = "SELECT clock_timestamp() - now() > INTERVAL '2 seconds'";
    const LEASE: &str = "SELECT owner, EXTRACT(EPOCH FROM expires_at - clock_timestamp())::FLOAT8 \
                         FROM lock_lease WHERE lock_key = 'a'";
    let (pair, looking) = connect().await?;
    get(&pair.ben, wish(&["a"])).await?.release().await;
    let mut business = looking.begin().await?;
    let mut stranger = looking.begin().await?;
    sqlx::query("SELECT 1 FROM lock_lease WHERE lock_key = 'a' FOR UPDATE")
        .execute(&mut *stranger)
        .await?;

    let asked = Claim {
        patience: PATIENCE,
        ..claim(&["a"], TTL)
    };
    let (asking, ana) = (asked.clone(), pair.ana.clone());
    let asking = tokio::spawn(async move { ana.system().ask(&asking).await });
    eventually("its now() is old", async || {
        let older = sqlx::query_scalar(OLDER).fetch_one(&mut *business).await;
        matches!(older, Ok(true))
    })
    .await?;
    let began = Instant::now();
    stranger.rollback().await?;
    let answer = soon("it is granted", asking).await???;
    ensure!(matches!(answer, Answer::Granted(_)), "{answer:?}");
    let (_, rest): (Option<String>, f64) = sqlx::query_as(LEASE).fetch_one(&looking).await?;
    let took = began.elapsed().as_secs_f64();
    println!("{rest} s are left of {TTL:?}, {took} s after the wait");
    ensure!(rest + took >= TTL.as_secs_f64(), "{rest} s are left");

    business.rollback().await?;
    let (owner, _): (Option<String>, f64) = sqlx::query_as(LEASE).fetch_one(&looking).await?;
    ensure!(owner == Some(asked.owner.to_string()), "it was undone");
    Ok(())
}

/// Bug 17: the poll is too slow to be what wakes the waiter here: it is heard at the hub itself.
#[tokio::test]
async fn a_waiter_is_told_also_after_the_listening_connection_was_cut() -> Result<()> {
    let (pair, looking) = connect().await?;
    let hub = pair.ben.system().wakeups().context("no wake-ups")?;
    let listener = hub.listen(&keys(&["a"]));
    for _ in 0..3 {
        soon("the connection is there", listener.woken()).await?;
        let held = claim(&["a"], LONG);
        grant(&pair.ana, &held).await?;
        is_refused(&pair.ben, &["a"]).await?;
        free(&pair.ana, &held).await?;
        soon("the release is heard", listener.woken()).await?;
        eventually("one connection listens", async || {
            listening(&looking).await.is_ok_and(|count| count == 1)
        })
        .await?;
        sqlx::query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND query LIKE 'LISTEN%'",
        )
        .execute(&looking)
        .await?;
    }
    Ok(())
}

/// Promised: five seconds until a silent connection is asked whether it lives, two for the answer, and a pause.
const DEAF: Duration = Duration::from_millis(7_100);

/// Bug 17: what the database tells the listening connection is lost, and the connection stays open, as behind a firewall
/// that forgot it. The poll lets the waiter in, and a new connection hears what is told later.
#[tokio::test]
async fn a_waiter_gets_in_although_what_is_told_is_lost_and_is_told_again_later() -> Result<()> {
    let url = postgres_server::database().await?;
    let (pair, looking) = connect_to(&url).await?;
    let direct: PgConnectOptions = url.parse()?;
    let server = (Ipv4Addr::LOCALHOST, direct.get_port()).into();
    let cable = Forwarder::start(server).await?;
    let through_cable = direct.clone().port(cable.address().port());
    let pool = PgPoolOptions::new().connect_lazy_with(through_cable);
    let deaf = LockService::new(Arc::new(Table::new(TableDatabase::Postgres(pool.clone()))));
    let hub = deaf.system().wakeups().context("no wake-ups")?;
    let listener = hub.listen(&keys(&["a"]));
    soon("the connection is there", listener.woken()).await?;
    // Only what listens is on the cable.
    pool.set_connect_options(direct);

    let held = get(&pair.ana, wish(&["a"])).await?;
    cable.mute();
    let began = Instant::now();
    let waiter = tokio::spawn({
        let deaf = deaf.clone();
        async move { get(&deaf, wish(&["a"])).await }
    });
    eventually("the row is marked", async || {
        matches!(is_marked(&looking).await, Ok(true))
    })
    .await?;
    held.release().await;
    let released = Instant::now();
    let got = soon("the poll lets it in", waiter).await???;
    println!("the poll let it in after {:?}", released.elapsed());
    ensure!(
        timeout(Duration::ZERO, listener.woken()).await.is_err(),
        "it was told"
    );
    got.release().await;

    let again = timeout(3 * DEAF, listener.woken()).await;
    println!(
        "it listens again after {:?}, promised {DEAF:?}",
        began.elapsed()
    );
    again.context("it does not listen again")?;
    let held = claim(&["a"], LONG);
    grant(&pair.ana, &held).await?;
    is_refused(&deaf, &["a"]).await?;
    free(&pair.ana, &held).await?;
    soon("the release is heard", listener.woken()).await
}

/// A lock that nobody waits for needs no further connection, and one is enough for all waiters of a replica.
#[tokio::test]
async fn one_connection_listens_once_somebody_waits() -> Result<()> {
    let (pair, looking) = connect().await?;
    drop(pair.ana.system().ask(&claim(&["a"], SHORT)).await?);
    ensure!(listening(&looking).await? == 0);
    for wanted in ["b", "c", "d"] {
        drop(get(&pair.ana, wish(&[wanted])).await?);
    }
    eventually("it listens", async || {
        matches!(listening(&looking).await, Ok(1))
    })
    .await?;
    drop(pair);
    eventually("nobody listens any more", async || {
        matches!(listening(&looking).await, Ok(0))
    })
    .await
}

/// Promised: a session that stops in the middle of an ask ends after three seconds.
const STOPPED: Duration = Duration::from_secs(3);

/// It has locked both rows, and its commit never comes.
#[tokio::test]
async fn a_replica_cut_off_in_an_ask_for_two_keys_does_not_keep_them_from_others() -> Result<()> {
    let url = postgres_server::database().await?;
    let (pair, looking) = connect_to(&url).await?;
    drop(get(&pair.ben, wish(&["a", "b"])).await?);
    let direct: PgConnectOptions = url.parse()?;
    let cable = Forwarder::start((Ipv4Addr::LOCALHOST, direct.get_port()).into()).await?;
    let port = format!(":{}/", direct.get_port());
    let through_cable = url.replace(&port, &format!(":{}/", cable.address().port()));
    let database = Database::open(&through_cable)?;
    let cut_off = LockService::new(Arc::new(Table::new(database.leases())));

    let mut stranger = looking.begin().await?;
    eventually("the rows are free", async || {
        let free = "SELECT owner FROM lock_lease WHERE lock_key = 'b' AND owner IS NULL FOR UPDATE";
        let row = sqlx::query(free).fetch_optional(&mut *stranger).await;
        matches!(row, Ok(Some(_)))
    })
    .await?;
    let asking = tokio::spawn({
        let cut_off = cut_off.clone();
        async move { cut_off.acquire(at_once(&["a", "b"])).await }
    });
    eventually("it waits for the second row", async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting = sqlx::query_scalar::<_, i64>(waiting);
        matches!(waiting.fetch_one(&looking).await, Ok(1))
    })
    .await?;
    cable.dark(true);
    stranger.rollback().await?;

    let began = Instant::now();
    let got = timeout(3 * STOPPED, async {
        loop {
            if let Ok(held) = pair.ben.acquire(wish(&["a"])).await {
                break held;
            }
        }
    });
    let got = got.await.context("the key is kept")?;
    println!("let in after {:?}, promised {STOPPED:?}", began.elapsed());
    got.check()?;
    let refused = soon("it is told", asking).await??;
    ensure!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    Ok(())
}

async fn next_token(service: &LockService) -> Result<Token> {
    let held = get(service, wish(&["a"])).await?;
    let token = held.token(&key("a")).context("no token")?;
    held.release().await;
    Ok(token)
}

/// Bug 31, and 41: down is neither acquired nor taken.
#[tokio::test]
async fn tokens_rise_over_a_crash_of_the_server_which_is_unavailable_meanwhile() -> Result<()> {
    let (mut server, _folder) = postgres_server::own().await?;
    let (pair, _looking) = connect_to(&server.url()).await?;
    let before = next_token(&pair.ana).await?;
    let held = get(
        &pair.ana,
        Wish {
            ttl: SHORT,
            ..wish(&["held"])
        },
    )
    .await?;
    server.kill().await?;
    let began = Instant::now();
    let limit = Duration::from_millis(500);
    let refused = pair
        .ben
        .acquire(Wish {
            wait: limit,
            ..wish(&["a"])
        })
        .await;
    println!("down was told after {:?}", began.elapsed());
    ensure!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    ensure!(began.elapsed() < 3 * (limit + Duration::from_secs(1)));
    soon("the own timer tells the loss", held.lost()).await?;

    server.start_again().await?;
    let began = Instant::now();
    let after = loop {
        match timeout(PATIENCE, next_token(&pair.ben)).await? {
            Ok(token) => break token,
            Err(error) => ensure!(began.elapsed() < PATIENCE, "{error}"),
        }
    };
    println!("works {:?} after it was back", began.elapsed());
    ensure!(before < after, "{before} {after}");
    Ok(())
}
