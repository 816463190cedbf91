//! The lock table in a SQLite file, beside a bare upsert and update of such a row.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::database::Database;
use doublebook::lock::systems;
use doublebook::stack::Launcher;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::Mutex;

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
            .fetch_one(&mut connect(address).await?)
            .await?;
        Ok(format!("SQLite {version}"))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        let database = Database::open(address)?.leases();
        Ok(layered(systems::Table::new(database)))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let mut connection = connect(address).await?;
        sqlx::raw_sql(table::BARE_TABLE)
            .execute(&mut connection)
            .await?;
        Ok(vec![Bare {
            what: table::BARE,
            at_most: Some(AT_MOST),
            once: upsert_and_update(connection),
        }])
    }
}

/// As a replica opens it: the file is in WAL mode since it was migrated.
async fn connect(address: &str) -> Result<SqliteConnection> {
    let options: SqliteConnectOptions = address.parse()?;
    let options = options.synchronous(SqliteSynchronous::Normal);
    Ok(options.connect().await?)
}

fn upsert_and_update(connection: SqliteConnection) -> Once {
    let connection = Arc::new(Mutex::new(connection));
    Box::new(move || {
        let connection = connection.clone();
        Box::pin(async move {
            let mut connection = connection.lock().await;
            let owner = owner();
            sqlx::query_scalar::<_, i64>(table::UPSERT)
                .bind(&owner)
                .fetch_one(&mut *connection)
                .await?;
            sqlx::query(table::UPDATE)
                .bind(&owner)
                .execute(&mut *connection)
                .await?;
            Ok(())
        })
    })
}
