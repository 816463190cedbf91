//! One pool of connections to either database, and how a connection is got from it within a limit.
//!
//! sqlx retries a refused connection until its own time is over. Here a refused database is told at once, and told
//! apart from a pool whose connections are all in use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::{PgConnectOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions};
use sqlx::{ConnectOptions, Connection, Pool};
use tokio::sync::Mutex;

use super::DatabaseError;

/// A connection that lay idle for longer is asked whether it still lives before it is used.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// How long a connection may be waited for before the server itself is asked whether it is there.
const SUSPICION: Duration = Duration::from_millis(200);

/// How long the answer to that question may take.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// Longer than any limit that callers give: theirs counts.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

/// How long an unused connection is kept.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// A pool, and what was last found out about its server.
#[derive(Debug, Clone)]
pub(super) struct AnyPool {
    kind: Kind,
    probe: Arc<Mutex<Option<Found>>>,
}

#[derive(Debug, Clone)]
enum Kind {
    Postgres(Pool<Postgres>),
    Sqlite(Pool<Sqlite>),
}

/// What a probe found: why the server is out of reach, or nothing.
#[derive(Debug, Clone)]
struct Found {
    at: Instant,
    trouble: Option<String>,
}

/// A connection out of a pool.
#[derive(Debug)]
pub(super) enum Link {
    Postgres(PoolConnection<Postgres>),
    Sqlite(PoolConnection<Sqlite>),
}

impl AnyPool {
    pub(super) fn postgres(options: PgConnectOptions, connections: u32) -> Self {
        Self::new(Kind::Postgres(
            options_of(connections).connect_lazy_with(options),
        ))
    }

    pub(super) fn sqlite(options: SqliteConnectOptions, connections: u32) -> Self {
        Self::new(Kind::Sqlite(
            options_of(connections).connect_lazy_with(options),
        ))
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            probe: Arc::default(),
        }
    }

    /// A connection within `limit`.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Busy` when all connections stay in use.
    pub(super) async fn get(&self, limit: Duration) -> Result<Link, DatabaseError> {
        let got = async {
            tokio::select! {
                biased;
                link = self.acquire() => link,
                trouble = self.refusal() => Err(DatabaseError::Unavailable(trouble)),
            }
        };
        tokio::time::timeout(limit, got)
            .await
            .unwrap_or_else(|_| Err(DatabaseError::Busy("no free connection".to_owned())))
    }

    async fn acquire(&self) -> Result<Link, DatabaseError> {
        Ok(match &self.kind {
            Kind::Postgres(pool) => Link::Postgres(pool.acquire().await?),
            Kind::Sqlite(pool) => Link::Sqlite(pool.acquire().await?),
        })
    }

    /// Returns only when the server of this pool is found to be out of reach.
    async fn refusal(&self) -> String {
        loop {
            tokio::time::sleep(SUSPICION).await;
            if let Some(trouble) = self.trouble().await {
                return trouble;
            }
        }
    }

    /// One probe at a time, its result shared: a thousand waiters ask the server no more often than one.
    async fn trouble(&self) -> Option<String> {
        let mut last = self.probe.lock().await;
        if let Some(found) = last.as_ref().filter(|found| found.at.elapsed() < SUSPICION) {
            return found.trouble.clone();
        }
        let trouble = match &self.kind {
            Kind::Postgres(pool) => probe(pool).await,
            Kind::Sqlite(pool) => probe(pool).await,
        };
        *last = Some(Found {
            at: Instant::now(),
            trouble: trouble.clone(),
        });
        trouble
    }

    /// Closes what is idle and waits for what is in use, at most for `limit`.
    pub(super) async fn close(&self, limit: Duration) {
        let closed = async {
            match &self.kind {
                Kind::Postgres(pool) => pool.close().await,
                Kind::Sqlite(pool) => pool.close().await,
            }
        };
        // What is still in use after the limit ends with the process.
        let _ = tokio::time::timeout(limit, closed).await;
    }

    /// The pool itself, for the lock table, which brings statements of its own.
    pub(super) fn into_table_pool(self) -> crate::lock::systems::TablePool {
        match self.kind {
            Kind::Postgres(pool) => crate::lock::systems::TablePool::Postgres(pool),
            Kind::Sqlite(pool) => crate::lock::systems::TablePool::Sqlite(pool),
        }
    }
}

fn options_of<DB: sqlx::Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(LONGEST_WAIT)
        .idle_timeout(IDLE_LIMIT)
        .test_before_acquire(false)
        .before_acquire(|connection: &mut DB::Connection, met| {
            Box::pin(async move {
                if met.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// Why a new connection cannot be had; a server that has no room for one more, or is slow, is there all the same.
async fn probe<DB: sqlx::Database>(pool: &Pool<DB>) -> Option<String> {
    match tokio::time::timeout(PROBE_LIMIT, pool.connect_options().connect()).await {
        Ok(Ok(connection)) => {
            // A probe that cannot say goodbye is closed all the same.
            let _ = connection.close().await;
            None
        }
        Ok(Err(error)) => match DatabaseError::from(error) {
            DatabaseError::Unavailable(trouble) => Some(trouble),
            _ => None,
        },
        // A machine under load is slow to connect; that the server is away is for those to say who are told so.
        Err(_) => None,
    }
}
