//! The lock table on PostgreSQL, beside a bare upsert and update of such a row.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::database::Database;
use doublebook::lock::systems;
use doublebook::stack::{Launcher, PostgresServer};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

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
        let pool = Database::open(address)?.leases();
        Ok(layered(systems::Table::new(pool)))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let pool = connect(address).await?;
        sqlx::raw_sql(BARE_TABLE).execute(&pool).await?;
        Ok(vec![Bare {
            what: BARE,
            at_most: Some(AT_MOST),
            once: upsert_and_update(pool),
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

/// One connection, for bare requests.
pub async fn connect(address: &str) -> Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(1);
    Ok(pool.test_before_acquire(false).connect(address).await?)
}

pub async fn version(address: &str) -> Result<String> {
    let version: String = sqlx::query_scalar("SHOW server_version")
        .fetch_one(&connect(address).await?)
        .await?;
    Ok(format!("PostgreSQL {version}"))
}

fn upsert_and_update(pool: PgPool) -> Once {
    Box::new(move || {
        let pool = pool.clone();
        Box::pin(async move {
            let owner = owner();
            sqlx::query_scalar::<_, i64>(UPSERT)
                .bind(&owner)
                .fetch_one(&pool)
                .await?;
            sqlx::query(UPDATE).bind(&owner).execute(&pool).await?;
            Ok(())
        })
    })
}
