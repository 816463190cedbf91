//! The table keeps the contract, and what only a table can do wrong.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use doublebook::lock::{
    LockError,
    systems::{Table, TableDatabase, table::SQLITE_DDL},
};
use sqlx::{
    ConnectOptions, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tempfile::TempDir;

use crate::pair::{LONG, Pair, at_once, claim, get, wish};

/// Two connections to one file, as two replicas have.
async fn sqlite() -> Result<(Pair, TempDir)> {
    let folder = tempfile::tempdir()?;
    sqlx::raw_sql(SQLITE_DDL)
        .execute(&mut open(&folder).await?)
        .await?;
    Ok((pair(&folder), folder))
}

/// The table must exist.
fn pair(folder: &TempDir) -> Pair {
    let table = || Table::new(TableDatabase::Sqlite(Box::new(file(folder))));
    Pair::new(table(), table())
}

fn file(folder: &TempDir) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(folder.path().join("locks.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // No test crashes the machine, and a slow disk would make each grant late.
        .synchronous(SqliteSynchronous::Off)
}

async fn open(folder: &TempDir) -> Result<SqliteConnection> {
    Ok(file(folder).connect().await?)
}

mod on_sqlite {
    crate::every_lock!(super::sqlite());
    crate::leases!(super::sqlite());
    crate::blind_releases!(super::sqlite());
}

#[tokio::test]
async fn a_file_that_stays_busy_is_unavailable_and_not_taken() -> Result<()> {
    let (pair, folder) = sqlite().await?;
    let mut writer = open(&folder).await?;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut writer)
        .await?;
    for wanted in [&["a"][..], &["a", "b"]] {
        let mut claim = claim(wanted, LONG);
        claim.patience = Duration::from_millis(200);
        let began = Instant::now();
        let refused = pair.ana.system().ask(&claim).await;
        println!("busy was told after {:?}", began.elapsed());
        ensure!(
            matches!(refused, Err(LockError::Unavailable { .. })),
            "{refused:?}"
        );
        ensure!(
            began.elapsed() < Duration::from_secs(2),
            "it took {:?}",
            began.elapsed()
        );
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut writer).await?;
    drop(get(&pair.ana, at_once(&["a", "b"])).await?);
    Ok(())
}

/// A disk can be full at the very end. Here a condition is checked then that no owner meets.
#[tokio::test]
async fn a_commit_that_fails_is_no_grant() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let refusing = SQLITE_DDL.replace(
        "owner TEXT,",
        "owner TEXT REFERENCES lock_lease (lock_key) DEFERRABLE INITIALLY DEFERRED,",
    );
    ensure!(refusing != SQLITE_DDL);
    sqlx::raw_sql(sqlx::AssertSqlSafe(refusing))
        .execute(&mut open(&folder).await?)
        .await?;
    for wanted in [&["a"][..], &["a", "b"]] {
        let answer = pair(&folder).ana.system().ask(&claim(wanted, LONG)).await;
        ensure!(
            matches!(answer, Err(LockError::Unavailable { .. })),
            "{answer:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_released_row_stays_and_keeps_its_token() -> Result<()> {
    let (pair, folder) = sqlite().await?;
    for _ in 0..3 {
        get(&pair.ana, wish(&["a"])).await?.release().await;
    }
    let row: (Option<String>, i64, i64) =
        sqlx::query_as("SELECT owner, token, expires_at FROM lock_lease")
            .fetch_one(&mut open(&folder).await?)
            .await?;
    ensure!(row == (None, 3, 0), "{row:?}");
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_not_there_is_unavailable() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let refused = pair(&folder).ana.acquire(wish(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    Ok(())
}
