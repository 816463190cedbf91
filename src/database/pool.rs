//! One pool of connections to either database, and how a connection is got from it within a limit.
//!
//! It promises that a database that cannot be reached is told at once, and told apart from a pool whose connections are
//! all in use; and that a connection goes back without a word to the server. It does not look after a connection that
//! was left in the middle of a statement: [`super::Session`] closes that.
//!
//! sqlx's own pool asks the server after each use whether the connection still lives, in a task of its own, and tries a
//! refused connection again until its time is over. (`docs/decisions/0016-a-pool-that-does-not-ask.md`.)

use std::time::Duration;

use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleResult, WeakPool,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, SqliteConnection};
use tokio::time::{sleep, timeout};

use super::DatabaseError;

/// A connection that lay idle for longer is asked whether it still lives before it is used.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// How long an unused connection is kept.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// The pause before a server that had no room for one more connection is asked again.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// A pool of either kind.
#[derive(Debug, Clone)]
pub(super) enum AnyPool {
    Postgres(Pool<Connector<PgConnection>>),
    Sqlite(Pool<Connector<SqliteConnection>>),
}

/// A connection out of a pool.
#[derive(Debug)]
pub(super) enum Link {
    Postgres(Object<Connector<PgConnection>>),
    Sqlite(Object<Connector<SqliteConnection>>),
}

/// Makes the connections of a pool.
#[derive(Debug)]
pub(super) struct Connector<C: Connection>(C::Options);

impl<C: Connection> Manager for Connector<C> {
    type Type = C;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<C, sqlx::Error> {
        self.0.connect().await
    }

    async fn recycle(&self, connection: &mut C, met: &Metrics) -> RecycleResult<sqlx::Error> {
        if met.last_used() > PING_AFTER_IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

impl AnyPool {
    pub(super) fn postgres(options: PgConnectOptions, connections: usize) -> anyhow::Result<Self> {
        Ok(Self::Postgres(pool_of(options, connections)?))
    }

    pub(super) fn sqlite(
        options: SqliteConnectOptions,
        connections: usize,
    ) -> anyhow::Result<Self> {
        Ok(Self::Sqlite(pool_of(options, connections)?))
    }

    /// A connection within `limit`.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Busy` when all connections stay in use.
    pub(super) async fn get(&self, limit: Duration) -> Result<Link, DatabaseError> {
        let got = async {
            loop {
                match self.acquire().await {
                    Err(DatabaseError::Busy(_)) => sleep(FULL_PAUSE).await,
                    got => return got,
                }
            }
        };
        timeout(limit, got)
            .await
            .unwrap_or_else(|_| Err(DatabaseError::Busy("no free connection".to_owned())))
    }

    async fn acquire(&self) -> Result<Link, DatabaseError> {
        let got = match self {
            Self::Postgres(pool) => pool.get().await.map(Link::Postgres),
            Self::Sqlite(pool) => pool.get().await.map(Link::Sqlite),
        };
        got.map_err(|error| match error {
            PoolError::Backend(error) => error.into(),
            closed => DatabaseError::Unavailable(closed.to_string()),
        })
    }

    /// Closes what is idle, in at most `limit`; what is in use is closed when it comes back.
    pub(super) async fn close(&self, limit: Duration) {
        let closed = async {
            match self {
                Self::Postgres(pool) => close(pool).await,
                Self::Sqlite(pool) => close(pool).await,
            }
        };
        // What is left after the limit ends with the process.
        let _ = timeout(limit, closed).await;
    }
}

fn pool_of<C: Connection + 'static>(
    options: C::Options,
    connections: usize,
) -> anyhow::Result<Pool<Connector<C>>> {
    let pool = Pool::builder(Connector(options))
        .max_size(connections)
        // The one used last: those that are not needed grow old, and are closed.
        .queue_mode(QueueMode::Lifo)
        .build()?;
    tokio::spawn(close_idle(pool.weak()));
    Ok(pool)
}

/// How the lock table's pool, which is sqlx's, keeps its connections: as those here, so that a request is not preceded
/// by a question.
pub(super) fn of_the_lock_table(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .idle_timeout(IDLE_LIMIT)
        .test_before_acquire(false)
        .before_acquire(|connection, met| {
            Box::pin(async move {
                if met.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// Closes connections that nobody uses, for as long as the pool is there.
async fn close_idle<C: Connection>(pool: WeakPool<Connector<C>>) {
    loop {
        sleep(IDLE_LIMIT / 2).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let old = pool.retain(|_, met| met.last_used() < IDLE_LIMIT).removed;
        say_goodbye(old).await;
    }
}

async fn close<C: Connection>(pool: &Pool<Connector<C>>) {
    let idle = pool.retain(|_, _| false).removed;
    pool.close();
    say_goodbye(idle).await;
}

async fn say_goodbye(connections: Vec<impl Connection>) {
    for connection in connections {
        // One that cannot say goodbye is closed all the same.
        let _ = connection.close().await;
    }
}
