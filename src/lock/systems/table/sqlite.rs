//! The statements for SQLite.
//!
//! The time is the system clock of the host that holds the file, which is the same for all replicas, asked for
//! inside the statement that decides. SQLite lets one writer in at a time, so a statement or a transaction that
//! writes from its beginning is never half-seen. A file that stays busy for as long as a request may take is
//! an error, "unavailable", and not a refusal.

use std::time::{Duration, Instant};

use sqlx::{
    ConnectOptions as _, Connection as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions},
};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};

use super::{answer, milliseconds};
use crate::lock::{
    claim::Claim,
    system::{Answer, ReleaseMode},
};

/// Creates the table.
pub const SQLITE_DDL: &str = "\
CREATE TABLE lock_lease (
    -- What is locked. The key makes the upsert meet one row.
    lock_key TEXT PRIMARY KEY,
    -- The acquisition that holds it, or held it last; null after a release.
    owner TEXT,
    -- Grows with each grant. The row is never deleted, or it would begin anew.
    token INTEGER NOT NULL,
    -- When the lease is over, in ms since 1970, by the clock of the host.
    expires_at INTEGER NOT NULL
);
";

/// How long a statement waits for a busy file inside of SQLite. Then it is begun anew, for as long as the request may
/// take: to tell SQLite each request's own limit would cost as much as the request.
const BUSY_STEP: Duration = Duration::from_millis(100);

/// SQLITE_BUSY; its extended codes have it in the low byte. (<https://www.sqlite.org/rescode.html>)
const BUSY: u32 = 5;

/// Takes a row that is over. An owner that asks again keeps its token.
const ASK: &str = "
INSERT INTO lock_lease AS lease (lock_key, owner, token, expires_at)
VALUES ($1, $2, 1, CAST(unixepoch('subsec') * 1000 AS INTEGER) + $3)
ON CONFLICT (lock_key) DO UPDATE
SET owner = excluded.owner,
    token = lease.token + CASE WHEN lease.owner = excluded.owner THEN 0 ELSE 1 END,
    expires_at = excluded.expires_at
WHERE lease.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
   OR lease.owner = excluded.owner
RETURNING token
";

/// A lease that is over is not renewed, also when nobody has taken it since.
const RENEW: &str = "
UPDATE lock_lease
SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + $3
WHERE lock_key = $1
  AND owner = $2
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
";

const RELEASE: &str = "
UPDATE lock_lease
SET owner = NULL,
    expires_at = 0
WHERE lock_key = $1
  AND (owner = $2 OR ($3 AND owner IS NOT NULL))
";

/// The file, through one connection: SQLite lets one writer in at a time, so a second would only poll for the file
/// against the first. Opened by the first request.
#[derive(Debug)]
pub(super) struct File {
    options: SqliteConnectOptions,
    connection: Mutex<Option<SqliteConnection>>,
}

impl File {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self {
            options: options.busy_timeout(BUSY_STEP),
            connection: Mutex::new(None),
        }
    }

    /// Asks for all keys or none. One key is one statement; several are one transaction.
    pub(super) async fn ask(&self, claim: &Claim) -> sqlx::Result<Answer> {
        let mut borrowed = self.borrow(claim).await?;
        let asked = ask_while_busy(&mut borrowed.connection, claim).await;
        borrowed.give_back(asked)
    }

    /// Renews each key by itself: a part that was renewed is over when its lease is, and does no harm.
    pub(super) async fn renew(&self, claim: &Claim) -> sqlx::Result<u64> {
        let mut borrowed = self.borrow(claim).await?;
        let renewed = renew_over(&mut borrowed.connection, claim).await;
        borrowed.give_back(renewed)
    }

    /// Frees each key by itself.
    pub(super) async fn release(&self, claim: &Claim, mode: ReleaseMode) -> sqlx::Result<u64> {
        let mut borrowed = self.borrow(claim).await?;
        let freed = release_over(&mut borrowed.connection, claim, mode).await;
        borrowed.give_back(freed)
    }

    /// The connection, if it becomes free in time. Giving up here is safe, since nothing was asked yet.
    async fn borrow(&self, claim: &Claim) -> sqlx::Result<Borrowed<'_>> {
        timeout(claim.patience, self.borrow_in_turn())
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn borrow_in_turn(&self) -> sqlx::Result<Borrowed<'_>> {
        let mut place = self.connection.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        Ok(Borrowed { connection, place })
    }
}

/// The connection while it is used. It goes back when its statements were answered, be it that they are refused. Cut
/// off in the middle it is closed, and with it ends what it had begun.
struct Borrowed<'a> {
    connection: SqliteConnection,
    place: MutexGuard<'a, Option<SqliteConnection>>,
}

impl Borrowed<'_> {
    fn give_back<T>(mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        if matches!(answer, Ok(_) | Err(sqlx::Error::Database(_))) {
            *self.place = Some(self.connection);
        }
        answer
    }
}

async fn ask_while_busy(connection: &mut SqliteConnection, claim: &Claim) -> sqlx::Result<Answer> {
    let until = Instant::now() + claim.patience;
    loop {
        match ask_over(connection, claim).await {
            Err(error) if is_busy(&error) && Instant::now() < until => {}
            asked => return asked,
        }
    }
}

async fn ask_over(connection: &mut SqliteConnection, claim: &Claim) -> sqlx::Result<Answer> {
    if claim.keys.count() == 1 {
        return Ok(answer(claim, &take(connection, claim).await?));
    }
    // A transaction that begins by reading cannot wait when it wants to write; this one waits at its beginning.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let answer = answer(claim, &take(&mut transaction, claim).await?);
    match answer {
        Answer::Granted(_) => transaction.commit().await?,
        Answer::Refused { .. } => transaction.rollback().await?,
    }
    Ok(answer)
}

/// Takes the keys until one refuses.
async fn take(connection: &mut SqliteConnection, claim: &Claim) -> sqlx::Result<Vec<i64>> {
    let mut tokens = Vec::with_capacity(claim.keys.count());
    for key in &claim.keys {
        // One row at most, but read to the end: a statement of its own is committed after its row was told, and an
        // error of that would be lost with the rest.
        let row = sqlx::query_scalar(ASK)
            .bind(key.as_str())
            .bind(claim.owner.to_string())
            .bind(milliseconds(claim.ttl))
            .fetch_all(&mut *connection)
            .await?;
        match row.first() {
            Some(&token) => tokens.push(token),
            None => break,
        }
    }
    Ok(tokens)
}

async fn renew_over(connection: &mut SqliteConnection, claim: &Claim) -> sqlx::Result<u64> {
    let mut renewed = 0;
    for key in &claim.keys {
        let statement = || {
            sqlx::query(RENEW)
                .bind(key.as_str())
                .bind(claim.owner.to_string())
                .bind(milliseconds(claim.ttl))
        };
        renewed += execute(connection, claim, statement).await?;
    }
    Ok(renewed)
}

async fn release_over(
    connection: &mut SqliteConnection,
    claim: &Claim,
    mode: ReleaseMode,
) -> sqlx::Result<u64> {
    let mut freed = 0;
    for key in &claim.keys {
        let statement = || {
            sqlx::query(RELEASE)
                .bind(key.as_str())
                .bind(claim.owner.to_string())
                .bind(mode == ReleaseMode::Blind)
        };
        freed += execute(connection, claim, statement).await?;
    }
    Ok(freed)
}

/// Runs a statement, and again while the file is busy, for as long as the request may take; one that found it busy has
/// changed nothing. Tells how many rows it changed.
async fn execute<'q>(
    connection: &mut SqliteConnection,
    claim: &Claim,
    statement: impl Fn() -> Query<'q, Sqlite, SqliteArguments>,
) -> sqlx::Result<u64> {
    let until = Instant::now() + claim.patience;
    loop {
        match statement().execute(&mut *connection).await {
            Err(error) if is_busy(&error) && Instant::now() < until => {}
            done => return Ok(done?.rows_affected()),
        }
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == BUSY)
}
