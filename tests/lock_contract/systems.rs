//! Every lock system by its address, so that another process can open the same one.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use doublebook::lock::{
    LockSystem,
    systems::{Redis, Table, TablePool, table::SQLITE_DDL},
};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Address {
    Redis(String),
    TableOnSqlite(PathBuf),
}

impl Address {
    /// A client of its own.
    pub async fn open(&self) -> Result<Arc<dyn LockSystem>> {
        Ok(match self {
            Self::Redis(url) => Arc::new(Redis::open(url)?),
            Self::TableOnSqlite(file) => {
                Arc::new(Table::new(TablePool::Sqlite(sqlite(file.clone()).await?)))
            }
        })
    }
}

async fn sqlite(file: PathBuf) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    Ok(SqlitePoolOptions::new()
        .max_connections(3)
        .connect_with(options)
        .await?)
}

mod redis {
    use super::{Address, Result};
    use crate::redis_server::RedisServer;

    async fn start() -> Result<(Address, RedisServer)> {
        let server = RedisServer::start().await?;
        Ok((Address::Redis(server.url()), server))
    }

    crate::processes::counts_in_two_processes!(start(), 10_000);
}

mod table_on_sqlite {
    use super::{Address, Result, SQLITE_DDL, sqlite};

    async fn start() -> Result<(Address, tempfile::TempDir)> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("locks.db");
        sqlx::raw_sql(SQLITE_DDL)
            .execute(&sqlite(file.clone()).await?)
            .await?;
        Ok((Address::TableOnSqlite(file), folder))
    }

    crate::processes::counts_in_two_processes!(start(), 10_000);
}
