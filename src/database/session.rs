//! A session runs statements by a deadline; a transaction is a session that must be ended.
//!
//! Transactions are begun and ended here and not by sqlx: up to 0.9.0 it can hand a connection with an open
//! transaction back to the pool when `begin()` is cancelled (its issue 4385). Here a future that is dropped, or a
//! deadline that passes, in the middle of a statement closes the connection, and the database rolls back.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool::managed::Object;
use sqlx::{AssertSqlSafe, Executor};

use super::pool::Link;
use super::sql::{Row, Sql};
use super::{DatabaseError, Dialect};

/// PostgreSQL ends a late statement itself; only when it does not answer either, the connection is thrown away.
const SERVER_GRACE: Duration = Duration::from_millis(500);

/// How long a rollback in the background may take before the connection is closed instead.
const ROLLBACK_LIMIT: Duration = Duration::from_secs(2);

/// A connection, and how long its user waits for each statement.
#[derive(Debug)]
pub struct Session {
    /// Gone once the connection was found late or broken.
    link: Option<Link>,
    /// Thinking and pausing between statements uses nothing up.
    limit: Duration,
    /// A statement is under way: a connection dropped now is in no known state.
    in_flight: bool,
}

impl Session {
    pub(super) fn new(link: Link, limit: Duration) -> Self {
        Self {
            link: Some(link),
            limit,
            in_flight: false,
        }
    }

    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        match self.link {
            Some(Link::Sqlite(_)) => Dialect::Sqlite,
            _ => Dialect::Postgres,
        }
    }

    /// How long its user waits for each statement, in whole ms, as PostgreSQL's settings take it: 0 would be no limit.
    pub(super) fn limit_in_ms(&self) -> String {
        self.limit.as_millis().max(1).to_string()
    }

    /// Runs a statement and brings all its rows.
    pub async fn all(&mut self, sql: Sql) -> Result<Vec<Row>, DatabaseError> {
        self.run(async |link| match link {
            Link::Postgres(connection) => {
                let rows = connection.fetch_all(sql.for_postgres()).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
            Link::Sqlite(connection) => {
                let rows = connection.fetch_all(sql.for_sqlite()).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
        })
        .await
    }

    /// Runs a statement and brings its first row.
    pub async fn first(&mut self, sql: Sql) -> Result<Option<Row>, DatabaseError> {
        Ok(self.all(sql).await?.into_iter().next())
    }

    /// Runs a statement that must bring a row.
    pub async fn one(&mut self, sql: Sql) -> Result<Row, DatabaseError> {
        self.first(sql)
            .await?
            .ok_or_else(|| DatabaseError::Broken("a statement brought no row".to_owned()))
    }

    /// Runs a statement and tells how many rows it changed.
    pub async fn execute(&mut self, sql: Sql) -> Result<u64, DatabaseError> {
        self.run(async |link| match link {
            Link::Postgres(connection) => Ok(connection
                .execute(sql.for_postgres())
                .await?
                .rows_affected()),
            Link::Sqlite(connection) => {
                Ok(connection.execute(sql.for_sqlite()).await?.rows_affected())
            }
        })
        .await
    }

    /// Runs several statements without values in one round trip.
    pub(super) async fn batch(&mut self, text: String) -> Result<(), DatabaseError> {
        self.run(async |link| {
            match link {
                Link::Postgres(connection) => {
                    connection
                        .execute(sqlx::raw_sql(AssertSqlSafe(text)))
                        .await?;
                }
                Link::Sqlite(connection) => {
                    connection
                        .execute(sqlx::raw_sql(AssertSqlSafe(text)))
                        .await?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn run<T>(
        &mut self,
        statement: impl AsyncFnOnce(&mut Link) -> Result<T, sqlx::Error>,
    ) -> Result<T, DatabaseError> {
        let Some(link) = self.link.as_mut() else {
            return Err(DatabaseError::Unavailable(
                "the connection was closed".to_owned(),
            ));
        };
        self.in_flight = true;
        let limit = self.limit + SERVER_GRACE;
        let Ok(result) = tokio::time::timeout(limit, statement(link)).await else {
            self.throw_away();
            return Err(DatabaseError::Busy("no answer within the limit".to_owned()));
        };
        self.in_flight = false;
        let result = result.map_err(DatabaseError::from);
        if matches!(result, Err(DatabaseError::Unavailable(_))) {
            self.throw_away();
        }
        result
    }

    /// Closes the socket at once, so that the server lets go of whatever this connection held.
    fn throw_away(&mut self) {
        match self.link.take() {
            Some(Link::Postgres(connection)) => drop(Object::take(connection)),
            Some(Link::Sqlite(connection)) => drop(Object::take(connection)),
            None => {}
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.in_flight {
            self.throw_away();
        }
    }
}

/// A session with an open transaction. Dropped without a commit, it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    session: Option<Session>,
}

impl Transaction {
    /// Sends `begin` over a session; from here on a dropped future cannot leave a transaction behind.
    pub(super) async fn begin(session: Session, begin: String) -> Result<Self, DatabaseError> {
        let mut transaction = Self {
            session: Some(session),
        };
        transaction.batch(begin).await?;
        Ok(transaction)
    }

    /// Commits.
    ///
    /// # Errors
    /// [`CommitError::Refused`] when certainly nothing was committed, [`CommitError::Unknown`] when nobody can say.
    pub async fn commit(mut self) -> Result<(), CommitError> {
        let Some(mut session) = self.session.take() else {
            return Ok(());
        };
        match session.batch("COMMIT".to_owned()).await {
            Ok(()) => Ok(()),
            // Without an answer, or from a server that is going down, the commit may have been written.
            Err(error @ DatabaseError::Unavailable(_)) => Err(CommitError::Unknown(error)),
            Err(error) if session.link.is_none() => Err(CommitError::Unknown(error)),
            Err(error) => {
                // SQLite keeps the transaction open when a commit finds the file busy.
                let open = Self {
                    session: Some(session),
                };
                open.rollback().await;
                Err(CommitError::Refused(error))
            }
        }
    }

    /// Rolls back. What cannot be told to roll back is closed, which comes to the same.
    pub async fn rollback(mut self) {
        if let Some(session) = self.session.take() {
            roll_back(session).await;
        }
    }

    /// Sets how long the user waits for each following statement.
    pub(super) fn limit_to(&mut self, limit: Duration) {
        if let Some(session) = self.session.as_mut() {
            session.limit = limit;
        }
    }
}

async fn roll_back(mut session: Session) {
    session.limit = ROLLBACK_LIMIT;
    if session.batch("ROLLBACK".to_owned()).await.is_err() {
        session.throw_away();
    }
}

/// Why a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Certainly nothing was committed.
    #[error("nothing was committed: {0}")]
    Refused(DatabaseError),
    /// The answer is missing: it may have been committed.
    #[error("nobody can say whether it was committed: {0}")]
    Unknown(DatabaseError),
}

impl From<CommitError> for DatabaseError {
    /// For writes that may be tried again, or whose loss does no harm.
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(error) | CommitError::Unknown(error) => error,
        }
    }
}

impl Deref for Transaction {
    type Target = Session;

    #[expect(
        clippy::expect_used,
        reason = "the session is taken only by the two calls that consume the transaction"
    )]
    fn deref(&self) -> &Session {
        self.session
            .as_ref()
            .expect("an open transaction has a session")
    }
}

impl DerefMut for Transaction {
    #[expect(
        clippy::expect_used,
        reason = "the session is taken only by the two calls that consume the transaction"
    )]
    fn deref_mut(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("an open transaction has a session")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !session.in_flight => drop(runtime.spawn(roll_back(session))),
            _ => session.throw_away(),
        }
    }
}
