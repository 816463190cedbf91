//! Every lock system by its address, so that another process can open the same one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use doublebook::{
    lock::{
        LockSystem,
        systems::{
            DynamoDb, Etcd, Redis, Redlock, Table, TableDatabase, ZooKeeper,
            table::{POSTGRES_DDL, POSTGRES_WAITERS_DDL, SQLITE_DDL},
        },
    },
    stack::{
        DynamoDbServer, EtcdServer, Kind, Launcher, RedisServer, Server, ZooKeeperServer, redlock,
    },
};
use serde::{Deserialize, Serialize};
use sqlx::{
    ConnectOptions, PgPool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::TempDir;

use crate::postgres_server;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Address {
    Redis(String),
    Redlock(Vec<String>),
    DynamoDb(String),
    TableOnSqlite(PathBuf),
    TableOnPostgres(String),
    ZooKeeper(String),
    Etcd(String),
}

/// Long enough for a machine that is busy.
const SESSION: Duration = Duration::from_secs(20);

/// What 32 tasks count to; and where each grant takes many requests or a Java machine, on a small machine.
const MANY: u64 = 10_000;
const FEWER: u64 = 2_000;

impl Address {
    /// A client of its own.
    pub async fn open(&self) -> Result<Arc<dyn LockSystem>> {
        Ok(match self {
            Self::Redis(url) => Arc::new(Redis::open(url)?),
            Self::Redlock(urls) => Arc::new(Redlock::open(urls)?),
            Self::DynamoDb(url) => Arc::new(DynamoDb::local(url)?),
            Self::TableOnPostgres(url) => Arc::new(Table::new(TableDatabase::Postgres(
                PgPool::connect(url).await?,
            ))),
            Self::ZooKeeper(servers) => Arc::new(ZooKeeper::open(servers, SESSION)?),
            Self::Etcd(url) => Arc::new(Etcd::open(std::slice::from_ref(url))?),
            Self::TableOnSqlite(file) => {
                Arc::new(Table::new(TableDatabase::Sqlite(Box::new(sqlite(file)))))
            }
        })
    }
}

fn sqlite(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
}

/// A server of its own, and the folder of its data.
async fn server<K: Kind>() -> Result<(Server<K>, TempDir)> {
    let folder = tempfile::tempdir()?;
    Ok((Server::start(&launcher(), folder.path()).await?, folder))
}

fn launcher() -> Launcher {
    Launcher::new(env!("CARGO_BIN_EXE_doublebook"))
}

mod redis {
    use super::*;

    async fn start() -> Result<(Address, (RedisServer, TempDir))> {
        let kept = server().await?;
        Ok((Address::Redis(kept.0.url()), kept))
    }

    crate::processes::counts_in_two_processes!(start(), MANY);
}

mod redlock_nodes {
    use super::*;

    async fn start() -> Result<(Address, (Vec<RedisServer>, TempDir))> {
        let folder = tempfile::tempdir()?;
        let nodes = redlock::start(&launcher(), folder.path()).await?;
        let urls = nodes.iter().map(Server::url).collect();
        Ok((Address::Redlock(urls), (nodes, folder)))
    }

    crate::processes::counts_in_two_processes!(start(), FEWER);
}

mod dynamodb {
    use super::*;

    async fn start() -> Result<(Address, (DynamoDbServer, TempDir))> {
        let kept = server().await?;
        Ok((Address::DynamoDb(kept.0.url()), kept))
    }

    crate::processes::counts_in_two_processes!(start(), FEWER);
}

mod table_on_sqlite {
    use super::*;

    async fn start() -> Result<(Address, TempDir)> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("locks.db");
        sqlx::raw_sql(SQLITE_DDL)
            .execute(&mut sqlite(&file).connect().await?)
            .await?;
        Ok((Address::TableOnSqlite(file), folder))
    }

    crate::processes::counts_in_two_processes!(start(), MANY);
}

mod table_on_postgres {
    use super::*;

    async fn start() -> Result<(Address, ())> {
        let url = postgres_server::database().await?;
        let pool = PgPool::connect(&url).await?;
        sqlx::raw_sql(POSTGRES_DDL).execute(&pool).await?;
        sqlx::raw_sql(POSTGRES_WAITERS_DDL).execute(&pool).await?;
        Ok((Address::TableOnPostgres(url), ()))
    }

    crate::processes::counts_in_two_processes!(start(), MANY);
}

mod zookeeper {
    use super::*;

    async fn start() -> Result<(Address, (ZooKeeperServer, TempDir))> {
        let kept = server().await?;
        Ok((Address::ZooKeeper(kept.0.url()), kept))
    }

    crate::processes::counts_in_two_processes!(start(), FEWER);
}

mod etcd {
    use super::*;

    async fn start() -> Result<(Address, (EtcdServer, TempDir))> {
        let kept = server().await?;
        Ok((Address::Etcd(kept.0.url()), kept))
    }

    crate::processes::counts_in_two_processes!(start(), MANY);
}
