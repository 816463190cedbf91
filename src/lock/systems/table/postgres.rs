//! The statements for PostgreSQL.
//!
//! The time is `clock_timestamp()`, never `now()`: a statement that waits for a row decides after the wait, and
//! `now()` would still be the time before it. READ COMMITTED, PostgreSQL's default, looks at the newest version of
//! the row then, so that exactly one of two waiters gets it. (PostgreSQL documentation, "Transaction Isolation".)
//!
//! Who is refused and waits marks the row; the next grant takes the mark away, and until then a release notifies. So
//! a lock that nobody waits for costs no notification.
//!
//! A grant and a renewal are committed durably, or a crash could undo a token that was handed out already. A mark and
//! a release need not be: what is lost with them is a wake-up, or the lease lasts until its end.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::time::{error::Elapsed, timeout};

use super::{answer, milliseconds};
use crate::lock::{
    claim::Claim,
    key::Key,
    system::{Answer, ReleaseMode},
};

/// Creates the table.
pub const POSTGRES_DDL: &str = "\
CREATE TABLE lock_lease (
    -- What is locked. The key makes the upsert meet one row.
    lock_key TEXT PRIMARY KEY,
    -- The acquisition that holds it, or held it last; null after a release.
    owner TEXT,
    -- Grows with each grant. The row is never deleted, or it would begin anew.
    token BIGINT NOT NULL,
    -- When the lease is over, by the clock of the database.
    expires_at TIMESTAMPTZ NOT NULL
);
";

/// Adds the mark of those who wait to the table above.
pub const POSTGRES_WAITERS_DDL: &str = "\
ALTER TABLE lock_lease
    -- Whether somebody was refused since the last grant, and waits for a release to be told.
    ADD COLUMN waited_for BOOLEAN NOT NULL DEFAULT FALSE;
";

/// Where a release is told, with the key.
pub(super) const CHANNEL: &str = "lock_lease_freed";

/// Takes a row that is over. An owner that asks again keeps its token.
const ASK: &str = "
INSERT INTO lock_lease AS lease (lock_key, owner, token, expires_at)
VALUES ($1, $2, 1, clock_timestamp() + $3 * INTERVAL '1 millisecond')
ON CONFLICT (lock_key) DO UPDATE
SET owner = excluded.owner,
    token = lease.token + CASE WHEN lease.owner = excluded.owner THEN 0 ELSE 1 END,
    waited_for = CASE WHEN lease.owner = excluded.owner THEN lease.waited_for ELSE FALSE END,
    expires_at = clock_timestamp() + $3 * INTERVAL '1 millisecond'
WHERE lease.expires_at <= clock_timestamp()
   OR lease.owner = excluded.owner
RETURNING token
";

/// Marks a row that is held, and says for how many ms it still is. `set_config` holds until the commit of this
/// statement.
const MARK: &str = "
UPDATE lock_lease
SET waited_for = TRUE
WHERE lock_key = $1
  AND expires_at > clock_timestamp()
RETURNING CAST(EXTRACT(EPOCH FROM expires_at - clock_timestamp()) * 1000 AS BIGINT),
    set_config('synchronous_commit', 'off', TRUE)
";

/// A lease that is over is not renewed, also when nobody has taken it since.
const RENEW: &str = "
UPDATE lock_lease
SET expires_at = clock_timestamp() + $3 * INTERVAL '1 millisecond'
WHERE lock_key = $1
  AND owner = $2
  AND expires_at > clock_timestamp()
";

const RELEASE: &str = "
UPDATE lock_lease
SET owner = NULL,
    expires_at = 'epoch'
WHERE lock_key = $1
  AND (owner = $2 OR ($3 AND owner IS NOT NULL))
RETURNING CASE WHEN waited_for THEN CAST(pg_notify($4, lock_key) AS TEXT) END,
    set_config('synchronous_commit', 'off', TRUE)
";

/// Asks for all keys or none. One key is one statement; several are one transaction.
pub(super) async fn ask(pool: &PgPool, claim: &Claim) -> sqlx::Result<Answer> {
    let mut borrowed = Borrowed::from(pool, claim).await?;
    let asked = timeout(claim.patience, ask_over(borrowed.connection()?, claim)).await;
    borrowed.give_back(asked)
}

async fn ask_over(connection: &mut PgConnection, claim: &Claim) -> sqlx::Result<Answer> {
    match take_all(connection, claim).await? {
        Answer::Refused { key, .. } if claim.waits => {
            let retry_in = mark(connection, &key).await?;
            Ok(Answer::Refused { key, retry_in })
        }
        answer => Ok(answer),
    }
}

/// Marks the row of a key that was refused; when its lease is over. At once, if it was freed meanwhile: nobody would
/// tell of that.
async fn mark(connection: &mut PgConnection, key: &Key) -> sqlx::Result<Option<Duration>> {
    let rest: Option<i64> = sqlx::query_scalar(MARK)
        .bind(key.as_str())
        .fetch_optional(connection)
        .await?;
    let rest = u64::try_from(rest.unwrap_or(0)).unwrap_or(0);
    Ok(Some(Duration::from_millis(rest)))
}

async fn take_all(connection: &mut PgConnection, claim: &Claim) -> sqlx::Result<Answer> {
    if claim.keys.count() == 1 {
        return Ok(answer(claim, &take(connection, claim).await?));
    }
    let mut transaction = connection.begin().await?;
    let answer = answer(claim, &take(&mut transaction, claim).await?);
    match answer {
        Answer::Granted(_) => transaction.commit().await?,
        Answer::Refused { .. } => transaction.rollback().await?,
    }
    Ok(answer)
}

/// Takes the keys until one refuses. In order, so that two transactions cannot wait for each other's rows.
async fn take(connection: &mut PgConnection, claim: &Claim) -> sqlx::Result<Vec<i64>> {
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
pub(super) async fn renew(pool: &PgPool, claim: &Claim) -> sqlx::Result<u64> {
    let mut borrowed = Borrowed::from(pool, claim).await?;
    let renewed = timeout(claim.patience, renew_over(borrowed.connection()?, claim)).await;
    borrowed.give_back(renewed)
}

async fn renew_over(connection: &mut PgConnection, claim: &Claim) -> sqlx::Result<u64> {
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
pub(super) async fn release(pool: &PgPool, claim: &Claim, mode: ReleaseMode) -> sqlx::Result<u64> {
    let mut borrowed = Borrowed::from(pool, claim).await?;
    let freed = timeout(
        claim.patience,
        release_over(borrowed.connection()?, claim, mode),
    )
    .await;
    borrowed.give_back(freed)
}

async fn release_over(
    connection: &mut PgConnection,
    claim: &Claim,
    mode: ReleaseMode,
) -> sqlx::Result<u64> {
    let mut freed = 0;
    for key in &claim.keys {
        freed += sqlx::query(RELEASE)
            .bind(key.as_str())
            .bind(claim.owner.to_string())
            .bind(mode == ReleaseMode::Blind)
            .bind(CHANNEL)
            .execute(&mut *connection)
            .await?
            .rows_affected();
    }
    Ok(freed)
}

/// A connection out of the pool that goes back only when its statement was answered. Cut off in the middle, by its
/// limit or by a dropped future, it is closed: in a network that drops packets it would never be free again.
struct Borrowed(Option<PoolConnection<Postgres>>);

impl Borrowed {
    async fn from(pool: &PgPool, claim: &Claim) -> sqlx::Result<Self> {
        let connection = timeout(claim.patience, pool.acquire()).await;
        Ok(Self(Some(
            connection.unwrap_or(Err(sqlx::Error::PoolTimedOut))?,
        )))
    }

    fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.0.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    fn give_back<T>(mut self, answer: Result<sqlx::Result<T>, Elapsed>) -> sqlx::Result<T> {
        let Ok(answer) = answer else {
            return Err(sqlx::Error::PoolTimedOut);
        };
        drop(self.0.take());
        answer
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
