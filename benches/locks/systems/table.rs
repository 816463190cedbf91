//! The lock table on PostgreSQL, beside a bare upsert and update of such a row.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::database::Database;
use doublebook::lock::systems;
use doublebook::stack::{Launcher, PostgresServer};
use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;

use super::{AT_MOST, Bare, Lock, Once, Server, System, layered, owner};

pub struct Table;

#[async_trait(?Send)]
impl System for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let server = PostgresServer::start(launcher, folder).await?;
        Database::migrate(&server.url()).await?;
        Ok(Server::new(server.url(), server))
    }

    async fn version(&self, address: &str) -> Result<String> {
        version(address).await
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        let database = Database::open(address)?.leases();
        Ok(layered(systems::Table::new(database)))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let mut connection = connect(address).await?;
        sqlx::raw_sql(BARE_TABLE).execute(&mut connection).await?;
        Ok(vec![Bare {
            what: BARE,
            at_most: Some(AT_MOST),
            once: upsert_and_update(connection),
        }])
    }
}

/// What the bare requests are, on either database.
pub const BARE: &str = "an upsert and an update";
pub const BARE_TABLE: &str = "CREATE TABLE bare (name TEXT PRIMARY KEY, owner TEXT, token BIGINT)";
pub const UPSERT: &str = "
INSERT INTO bare VALUES ('a', $1, 1)
ON CONFLICT (name) DO UPDATE
SET owner = excluded.owner,
    token = bare.token + 1
RETURNING token
";
pub const UPDATE: &str = "
UPDATE bare
SET owner = NULL
WHERE name = 'a'
  AND owner = $1
";

/// One connection and no pool around it: what a pool asks on its own account would count as bare requests.
pub async fn connect(address: &str) -> Result<PgConnection> {
    Ok(PgConnection::connect(address).await?)
}

pub async fn version(address: &str) -> Result<String> {
    let version: String = sqlx::query_scalar("SHOW server_version")
        .fetch_one(&mut connect(address).await?)
        .await?;
    Ok(format!("PostgreSQL {version}"))
}

fn upsert_and_update(connection: PgConnection) -> Once {
    let connection = Arc::new(Mutex::new(connection));
    Box::new(move || {
        let connection = connection.clone();
        Box::pin(async move {
            let mut connection = connection.lock().await;
            let owner = owner();
            sqlx::query_scalar::<_, i64>(UPSERT)
                .bind(&owner)
                .fetch_one(&mut *connection)
                .await?;
            sqlx::query(UPDATE)
                .bind(&owner)
                .execute(&mut *connection)
                .await?;
            Ok(())
        })
    })
}
