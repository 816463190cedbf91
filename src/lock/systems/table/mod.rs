//! `table`: rows of leases in the application's own database, PostgreSQL or SQLite.
//!
//! A grant is one upsert that takes a row whose lease is over. The row stays for ever, since it carries the token;
//! a release only clears its owner. The database's clock alone decides what is over: two replicas never compare
//! their own clocks.
//!
//! It promises what the database promises: a grant that was committed is seen by everybody. On PostgreSQL a waiter
//! marks the row, and a release of a marked row tells everybody who listens; they all ask, in no order between
//! replicas. SQLite has no way to tell, so waiters back off there. Its connections are its own, so that lock waiters
//! cannot starve the business transactions, and none is held longer than one request; on PostgreSQL one more listens,
//! once somebody waits.
//!
//! The library creates no table: the application does, with [`POSTGRES_DDL`] and [`POSTGRES_WAITERS_DDL`], or with
//! [`SQLITE_DDL`].

mod listening;
mod postgres;
mod sqlite;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{PgPool, sqlite::SqliteConnectOptions};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::lock::{
    claim::{Claim, Grant, Token},
    error::LockError,
    guarantees::LockName,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal},
    wakeups::Wakeups,
};

pub use self::{
    postgres::{POSTGRES_DDL, POSTGRES_WAITERS_DDL},
    sqlite::SQLITE_DDL,
};

/// The database that holds the table.
#[derive(Debug, Clone)]
pub enum TableDatabase {
    /// PostgreSQL, through a pool that nobody else uses; a few connections are enough. They should have a
    /// `statement_timeout` and an `idle_in_transaction_session_timeout` of some seconds, so that a client that vanishes
    /// in the middle of a request keeps its rows for no longer.
    Postgres(PgPool),
    /// SQLite in WAL mode. All replicas must see the same file of the same host.
    Sqlite(Box<SqliteConnectOptions>),
}

/// Grants locks as rows of a table.
#[derive(Debug)]
pub struct Table {
    rows: Rows,
    wakeups: Arc<Wakeups>,
    /// Started by the first waiter.
    listening: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
enum Rows {
    Postgres(PgPool),
    Sqlite(Box<sqlite::File>),
}

impl Table {
    /// Uses the table of this database; it must exist. Connects to nothing yet.
    pub fn new(database: TableDatabase) -> Self {
        Self {
            rows: match database {
                TableDatabase::Postgres(pool) => Rows::Postgres(pool),
                TableDatabase::Sqlite(options) => {
                    Rows::Sqlite(Box::new(sqlite::File::new(*options)))
                }
            },
            wakeups: Arc::default(),
            listening: OnceLock::new(),
        }
    }
}

#[async_trait]
impl LockSystem for Table {
    fn name(&self) -> LockName {
        LockName::Table
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        let asked = match &self.rows {
            Rows::Postgres(pool) => postgres::ask(pool, claim).await,
            Rows::Sqlite(file) => file.ask(claim).await,
        };
        asked.map_err(unavailable)
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let renewed = match &self.rows {
            Rows::Postgres(pool) => postgres::renew(pool, claim).await,
            Rows::Sqlite(file) => file.renew(claim).await,
        };
        Ok(if all(claim, renewed)? {
            Renewal::Kept
        } else {
            Renewal::Lost
        })
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        let freed = match &self.rows {
            Rows::Postgres(pool) => postgres::release(pool, claim, mode).await,
            Rows::Sqlite(file) => file.release(claim, mode).await,
        };
        Ok(if all(claim, freed)? {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }

    fn wakeups(&self) -> Option<&Wakeups> {
        let Rows::Postgres(pool) = &self.rows else {
            return None;
        };
        if let Ok(runtime) = Handle::try_current() {
            self.listening.get_or_init(|| {
                let feed = listening::feed(pool.clone(), self.wakeups.clone());
                AbortOnDropHandle::new(runtime.spawn(feed))
            });
        }
        Some(&self.wakeups)
    }
}

/// Whether as many rows were changed as the claim has keys.
fn all(claim: &Claim, changed: sqlx::Result<u64>) -> Result<bool, LockError> {
    let changed = changed.map_err(unavailable)?;
    Ok(usize::try_from(changed) == Ok(claim.keys.count()))
}

/// What an ask found out: the tokens in the order of the keys, up to the first key that refused.
fn answer(claim: &Claim, tokens: &[i64]) -> Answer {
    match claim.keys.iter().nth(tokens.len()) {
        Some(key) => Answer::Refused {
            key: key.clone(),
            retry_in: None,
        },
        None => Answer::Granted(grant(claim, tokens)),
    }
}

fn grant(claim: &Claim, tokens: &[i64]) -> Grant {
    let tokens = tokens.iter().map(|&token| Token::new(token));
    claim.keys.iter().cloned().zip(tokens).collect()
}

/// The lease time in ms, as both dialects bind it.
fn milliseconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

fn unavailable(error: sqlx::Error) -> LockError {
    LockError::unavailable(format!("the database of the lock table: {error}"))
}
