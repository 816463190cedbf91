//! The statements for SQLite.
//!
//! The time is the system clock of the host that holds the file, which is the same for all replicas, asked for
//! inside the statement that decides. SQLite lets one writer in at a time, so a statement or a transaction that
//! writes from its beginning is never half-seen. A file that stays busy for as long as a request may take is
//! an error, "unavailable", and not a refusal.

use sqlx::{
    AssertSqlSafe, Connection as _, Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection,
};

use super::{answer, connection, milliseconds};
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

/// The longest busy timeout in ms, should a request be allowed to take longer.
const LONGEST_BUSY: i64 = 60_000;

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

/// Asks for all keys or none. One key is one statement; several are one transaction.
pub(super) async fn ask(pool: &SqlitePool, claim: &Claim) -> sqlx::Result<Answer> {
    let mut connection = connect(pool, claim).await?;
    if claim.keys.count() == 1 {
        return Ok(answer(claim, &take(&mut connection, claim).await?));
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
        let token = sqlx::query_scalar(ASK)
            .bind(key.as_str())
            .bind(claim.owner.to_string())
            .bind(milliseconds(claim.ttl))
            .fetch_optional(&mut *connection)
            .await?;
        match token {
            Some(token) => tokens.push(token),
            None => break,
        }
    }
    Ok(tokens)
}

/// Renews each key by itself: a part that was renewed is over when its lease is, and does no harm.
pub(super) async fn renew(pool: &SqlitePool, claim: &Claim) -> sqlx::Result<u64> {
    let mut connection = connect(pool, claim).await?;
    let mut renewed = 0;
    for key in &claim.keys {
        renewed += sqlx::query(RENEW)
            .bind(key.as_str())
            .bind(claim.owner.to_string())
            .bind(milliseconds(claim.ttl))
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(renewed)
}

/// Frees each key by itself.
pub(super) async fn release(
    pool: &SqlitePool,
    claim: &Claim,
    mode: ReleaseMode,
) -> sqlx::Result<u64> {
    let mut connection = connect(pool, claim).await?;
    let mut freed = 0;
    for key in &claim.keys {
        freed += sqlx::query(RELEASE)
            .bind(key.as_str())
            .bind(claim.owner.to_string())
            .bind(mode == ReleaseMode::Blind)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(freed)
}

/// A connection that waits for a busy file no longer than the request may take.
async fn connect(pool: &SqlitePool, claim: &Claim) -> sqlx::Result<PoolConnection<Sqlite>> {
    let mut connection = connection(pool, claim).await?;
    let patience = milliseconds(claim.patience).min(LONGEST_BUSY);
    let pragma = format!("PRAGMA busy_timeout = {patience}");
    sqlx::raw_sql(AssertSqlSafe(pragma))
        .execute(&mut *connection)
        .await?;
    Ok(connection)
}
