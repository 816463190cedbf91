//! Opening a database: its address, its pools, its migrations, and the ways to begin.

use std::fs::File;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlx::ConnectOptions;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::DatabaseError;
use super::pool::{AnyPool, of_the_lock_table};
use super::session::{Session, Transaction};
use crate::lock::systems::TableDatabase;

static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");

/// Connections for plain reads, per replica. With the three below, two replicas stay under PostgreSQL's default of 100.
const READ_CONNECTIONS: usize = 6;
/// Connections for business transactions. Apart from the reads: an attempt that is paused before its commit must not
/// keep anybody from looking where it stands.
const WRITE_CONNECTIONS: usize = 10;
/// Connections for attempts under `row`, which hold theirs while they wait and think.
const ROW_CONNECTIONS: usize = 24;
/// Connections of the lock table; it makes one more, to listen.
const LEASE_CONNECTIONS: u32 = 4;

/// SQLite has one writer at a time: a second connection would only poll for the file against the first.
const SQLITE_WRITERS: usize = 1;
const SQLITE_READERS: usize = 4;

/// How long somebody who does not wait for rows waits for a connection to them.
const CONNECTING: Duration = Duration::from_millis(500);

/// What PostgreSQL puts up with from a session, whatever became of its client.
struct SessionLimits {
    /// For one statement.
    statement: Duration,
    /// Between two statements of a transaction, which may have locked rows.
    idle_in_transaction: Duration,
}

/// Longer than the longest wait, and than the longest pause before a commit.
const WORK: SessionLimits = SessionLimits {
    statement: Duration::from_secs(70),
    idle_in_transaction: Duration::from_secs(150),
};

/// A request to the lock table takes five seconds at most and pauses nowhere; a replica that freezes in the middle of
/// one must not keep a key from the others.
const LEASES: SessionLimits = SessionLimits {
    statement: Duration::from_secs(6),
    idle_in_transaction: Duration::from_secs(3),
};

/// How long a start waits for another process that is migrating the same file.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(60);

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// The database of all replicas.
#[derive(Debug, Clone)]
pub struct Database {
    dialect: Dialect,
    reads: AnyPool,
    writes: AnyPool,
    rows: AnyPool,
    leases: TableDatabase,
}

/// Where a database is: `postgres://…`, `postgresql://…` or `sqlite:path`.
#[derive(Debug, Clone)]
enum Address {
    Postgres(Box<PgConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(url).context("not a PostgreSQL URL")?;
            return Ok(Self::Postgres(Box::new(
                options.application_name("doublebook"),
            )));
        }
        if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(url).context("not a SQLite URL")?;
            return Ok(Self::Sqlite(Box::new(sqlite_options(options))));
        }
        anyhow::bail!("a database is postgres://user@host/name or sqlite:path");
    }
}

impl SessionLimits {
    fn of(&self, options: &PgConnectOptions) -> PgConnectOptions {
        options.clone().options([
            ("statement_timeout", self.statement.as_millis()),
            (
                "idle_in_transaction_session_timeout",
                self.idle_in_transaction.as_millis(),
            ),
        ])
    }
}

fn sqlite_options(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // Survives the death of any process; only a power cut can lose the last commits.
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(5))
}

impl Database {
    /// Opens the pools. Nothing is connected yet, so a database that is away does not stop a replica.
    ///
    /// # Errors
    /// A URL that names no database that we know.
    pub fn open(url: &str) -> anyhow::Result<Self> {
        Ok(match Address::from_str(url)? {
            Address::Postgres(options) => {
                let pool = |connections| AnyPool::postgres(WORK.of(&options), connections);
                Self {
                    dialect: Dialect::Postgres,
                    reads: pool(READ_CONNECTIONS)?,
                    writes: pool(WRITE_CONNECTIONS)?,
                    rows: pool(ROW_CONNECTIONS)?,
                    leases: TableDatabase::Postgres(
                        of_the_lock_table(LEASE_CONNECTIONS).connect_lazy_with(LEASES.of(&options)),
                    ),
                }
            }
            Address::Sqlite(options) => {
                let pool = |connections| AnyPool::sqlite((*options).clone(), connections);
                Self {
                    dialect: Dialect::Sqlite,
                    reads: pool(SQLITE_READERS)?,
                    writes: pool(SQLITE_WRITERS)?,
                    rows: pool(SQLITE_WRITERS)?,
                    leases: TableDatabase::Sqlite(options),
                }
            }
        })
    }

    /// Brings the tables up to date. Replicas that start together wait for each other.
    pub async fn migrate(url: &str) -> anyhow::Result<()> {
        match Address::from_str(url)? {
            // sqlx takes an advisory lock for PostgreSQL, and none for SQLite.
            Address::Postgres(options) => {
                let mut connection = WORK
                    .of(&options)
                    .connect()
                    .await
                    .context("cannot connect to the database")?;
                POSTGRES
                    .run(&mut connection)
                    .await
                    .context("cannot migrate the database")
            }
            Address::Sqlite(options) => {
                let _alone = alone_with(options.get_filename().with_extension("migrating")).await?;
                let mut connection = options
                    .connect()
                    .await
                    .context("cannot open the database file")?;
                SQLITE
                    .run(&mut connection)
                    .await
                    .context("cannot migrate the database file")
            }
        }
    }

    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// A session for statements that stand alone, of a user who waits at most `limit`.
    pub async fn read(&self, limit: Duration) -> Result<Session, DatabaseError> {
        Ok(session(&self.reads, limit).await?.0)
    }

    /// Whether the database answers.
    pub async fn ping(&self, limit: Duration) -> Result<(), DatabaseError> {
        let mut session = self.read(limit).await?;
        session.one(super::sql("SELECT 1 AS here")).await.map(drop)
    }

    /// Several reads that see the same moment.
    pub async fn snapshot(&self, limit: Duration) -> Result<Transaction, DatabaseError> {
        let (session, left) = session(&self.reads, limit).await?;
        let begin = match self.dialect {
            Dialect::Postgres => {
                format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}",
                    statement_timeout(left)
                )
            }
            // In WAL mode a deferred transaction keeps the state that its first read saw.
            Dialect::Sqlite => "BEGIN DEFERRED".to_owned(),
        };
        Transaction::begin(session, begin).await
    }

    /// A transaction that writes. On SQLite it holds the file from here on.
    pub async fn begin(&self, limit: Duration) -> Result<Transaction, DatabaseError> {
        let (session, left) = session(&self.writes, limit).await?;
        let begin = self.writing(left);
        Transaction::begin(session, begin).await
    }

    /// A session for one statement that writes and is a transaction by itself. Not for SQLite, where whoever writes
    /// must first say how long it waits for the file.
    pub async fn write_alone(&self, limit: Duration) -> Result<Session, DatabaseError> {
        Ok(session(&self.writes, limit).await?.0)
    }

    /// A transaction whose rows are the locks. It has a pool of its own, so that waiters never take the connections
    /// of those that they wait for. On SQLite this takes the one lock of the whole file; the pool has one
    /// connection there, so the attempts of a replica queue in order and one of them waits at the file.
    pub async fn begin_rows(&self, limit: Duration) -> Result<Transaction, DatabaseError> {
        if self.dialect == Dialect::Postgres {
            // The lock is not asked for yet, and whoever does not wait for it needs a connection all the same.
            let (session, _) = session(&self.rows, limit.max(CONNECTING)).await?;
            return Transaction::begin(session, self.writing(limit)).await;
        }
        let (session, left) = session(&self.rows, limit).await?;
        let begin = self.writing(left);
        Transaction::begin(session, begin).await
    }

    /// Sets how long the following statements of a transaction may take.
    pub async fn give(
        &self,
        transaction: &mut Transaction,
        limit: Duration,
    ) -> Result<(), DatabaseError> {
        transaction.limit_to(limit);
        match self.dialect {
            Dialect::Postgres => transaction.batch(statement_timeout(limit)).await,
            Dialect::Sqlite => Ok(()),
        }
    }

    fn writing(&self, limit: Duration) -> String {
        match self.dialect {
            Dialect::Postgres => {
                format!(
                    "BEGIN ISOLATION LEVEL READ COMMITTED; {}",
                    statement_timeout(limit)
                )
            }
            Dialect::Sqlite => format!(
                "PRAGMA busy_timeout = {}; BEGIN IMMEDIATE",
                limit.as_millis()
            ),
        }
    }

    /// Where the lock table is.
    pub fn leases(&self) -> TableDatabase {
        self.leases.clone()
    }

    /// Closes all connections, waiting at most `limit` for those in use.
    pub async fn close(&self, limit: Duration) {
        tokio::join!(
            self.reads.close(limit),
            self.writes.close(limit),
            self.rows.close(limit)
        );
    }
}

/// A session, and how much of the limit is left after it was waited for.
async fn session(pool: &AnyPool, limit: Duration) -> Result<(Session, Duration), DatabaseError> {
    let since = Instant::now();
    let link = pool.get(limit).await?;
    Ok((
        Session::new(link, limit),
        limit.saturating_sub(since.elapsed()),
    ))
}

/// 0 would mean no limit at all.
fn statement_timeout(limit: Duration) -> String {
    format!("SET LOCAL statement_timeout = {}", limit.as_millis().max(1))
}

/// Takes a lock file that only one process of this machine can hold; it is let go when the file is closed.
async fn alone_with(path: PathBuf) -> anyhow::Result<File> {
    let name = path.display().to_string();
    let file = File::create(&path).with_context(|| format!("cannot create {name}"))?;
    let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
    tokio::time::timeout(MIGRATION_PATIENCE, waiting)
        .await
        .with_context(|| {
            format!(
                "another process has held {name} for {} s",
                MIGRATION_PATIENCE.as_secs()
            )
        })??
        .with_context(|| format!("cannot lock {name}"))
}
