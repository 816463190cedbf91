//! The lock table in a SQLite file, beside a bare upsert and update of such a row.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::database::Database;
use doublebook::lock::systems;
use doublebook::stack::Launcher;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};

use super::{AT_MOST, Bare, Lock, Once, Server, System, layered, owner, table};

pub struct TableSqlite;

#[async_trait(?Send)]
impl System for TableSqlite {
    fn name(&self) -> &'static str {
        "table-sqlite"
    }

    async fn start(&self, _: &Launcher, folder: &Path) -> Result<Server> {
        let address = format!("sqlite:{}", folder.join("locks.db").display());
        Database::migrate(&address).await?;
        Ok(Server::new(address, ()))
    }

    async fn version(&self, address: &str) -> Result<String> {
        let version: String = sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(&connect(address).await?)
            .await?;
        Ok(format!("SQLite {version}"))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        let pool = Database::open(address)?.leases();
        Ok(layered(systems::Table::new(pool)))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let pool = connect(address).await?;
        sqlx::raw_sql(table::BARE_TABLE).execute(&pool).await?;
        Ok(vec![Bare {
            what: table::BARE,
            at_most: Some(AT_MOST),
            once: upsert_and_update(pool),
        }])
    }
}

/// As a replica opens it: the file is in WAL mode since it was migrated.
async fn connect(address: &str) -> Result<SqlitePool> {
    let options: SqliteConnectOptions = address.parse()?;
    let pool = SqlitePoolOptions::new().max_connections(1);
    Ok(pool
        .test_before_acquire(false)
        .connect_with(options.synchronous(SqliteSynchronous::Normal))
        .await?)
}

fn upsert_and_update(pool: SqlitePool) -> Once {
    Box::new(move || {
        let pool = pool.clone();
        Box::pin(async move {
            let owner = owner();
            sqlx::query_scalar::<_, i64>(table::UPSERT)
                .bind(&owner)
                .fetch_one(&pool)
                .await?;
            sqlx::query(table::UPDATE)
                .bind(&owner)
                .execute(&pool)
                .await?;
            Ok(())
        })
    })
}
