//! `SELECT … FOR UPDATE` on PostgreSQL, in a transaction of its own: the lock that needs no lock system.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use doublebook::stack::{Launcher, PostgresServer};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::{Bare, Lock, Server, System, WAIT, table};

/// As many as a replica has.
const CONNECTIONS: u32 = 24;

pub struct Row;

#[async_trait(?Send)]
impl System for Row {
    fn name(&self) -> &'static str {
        "row"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let server = PostgresServer::start(launcher, folder).await?;
        let table = "CREATE TABLE thing (name TEXT PRIMARY KEY)";
        sqlx::raw_sql(table)
            .execute(&mut table::connect(&server.url()).await?)
            .await?;
        Ok(Server::new(server.url(), server))
    }

    async fn version(&self, address: &str) -> Result<String> {
        table::version(address).await
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(WAIT)
            .test_before_acquire(false);
        Ok(Arc::new(Rows(pool.connect(address).await?)))
    }

    async fn bare(&self, _: &str) -> Result<Vec<Bare>> {
        Ok(Vec::new())
    }
}

struct Rows(PgPool);

#[async_trait]
impl Lock for Rows {
    async fn hold(&self, key: &str, work: fn()) -> Result<Duration> {
        let since = Instant::now();
        let mut transaction = self.0.begin().await?;
        let take = "SELECT name FROM thing WHERE name = $1 FOR UPDATE";
        let taken = sqlx::query(take)
            .bind(key)
            .fetch_optional(&mut *transaction)
            .await?;
        if taken.is_none() {
            // The first one makes it; whoever comes second waits for that, and has it then, too.
            sqlx::query("INSERT INTO thing VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name")
                .bind(key)
                .execute(&mut *transaction)
                .await?;
        }
        let waited = since.elapsed();
        work();
        transaction.commit().await?;
        Ok(waited)
    }
}
