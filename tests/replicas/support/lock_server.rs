//! A look behind the replicas: what the lock servers and the database themselves hold.

use redis::AsyncCommands;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use super::deadline::{PATIENCE, eventually};
use super::world::{Database, World};

impl World {
    /// The locks of a room that somebody holds, in Redis and in the table, as the lock servers know them.
    pub async fn locks_held(&self, room: &str) -> Vec<String> {
        let mut locks = self.locks_in_redis(room).await;
        let now = match self.database() {
            Database::Postgres => "clock_timestamp()",
            Database::Sqlite => "unixepoch('subsec') * 1000",
        };
        // What ran out unreleased keeps its owner's name.
        let in_table = format!(
            "SELECT lock_key
             FROM lock_lease
             WHERE owner IS NOT NULL
               AND expires_at > {now}
               AND lock_key LIKE '%{room}/%'"
        );
        locks.extend(self.texts(&in_table).await);
        locks
    }

    /// The keys in Redis that name this room and end by themselves, as locks do.
    async fn locks_in_redis(&self, room: &str) -> Vec<String> {
        let mut connection = self.redis_connection().await;
        let keys: Vec<String> = connection
            .keys(format!("*{room}/*"))
            .await
            .expect("Redis answers");
        let mut locks = Vec::new();
        for key in keys {
            let ttl: i64 = connection.pttl(&key).await.expect("Redis answers");
            if ttl > 0 {
                locks.push(key);
            }
        }
        locks
    }

    /// Empties Redis, counters and all.
    pub async fn redis_forgets_everything(&self) {
        let mut connection = self.redis_connection().await;
        let () = redis::cmd("FLUSHALL")
            .query_async(&mut connection)
            .await
            .expect("Redis answers");
    }

    /// Whether some transaction of a replica is open (PostgreSQL) or holds the file (SQLite).
    pub async fn has_open_transactions(&self) -> bool {
        match self.database() {
            Database::Postgres => {
                let open = "SELECT query FROM pg_stat_activity \
                     WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
                !self.texts(open).await.is_empty()
            }
            Database::Sqlite => {
                let mut connection = self.sqlite().await;
                sqlx::query("PRAGMA busy_timeout = 500")
                    .execute(&mut connection)
                    .await
                    .expect("a busy timeout");
                sqlx::query("BEGIN IMMEDIATE")
                    .execute(&mut connection)
                    .await
                    .is_err()
            }
        }
    }

    /// Runs one statement in the database of the replicas and gives the number of rows that it changed.
    pub async fn changes(&self, statement: &str) -> u64 {
        let statement = AssertSqlSafe(statement.to_owned());
        match self.database() {
            Database::Postgres => sqlx::query(statement)
                .execute(&mut self.postgresql().await)
                .await
                .map(|done| done.rows_affected()),
            Database::Sqlite => sqlx::query(statement)
                .execute(&mut self.sqlite().await)
                .await
                .map(|done| done.rows_affected()),
        }
        .expect("the statement runs")
    }

    /// Waits until a connection of the replicas waits for a lock of another one.
    pub async fn somebody_waits_for_a_row(&self) {
        let query = "SELECT query FROM pg_stat_activity \
                     WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("somebody who waits for a row", PATIENCE, async || {
            match self.texts(query).await.is_empty() {
                true => Err("nobody"),
                false => Ok(()),
            }
            .map_err(str::to_owned)
        })
        .await;
    }

    /// The texts that a query answers.
    async fn texts(&self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(query.to_owned());
        match self.database() {
            Database::Postgres => {
                sqlx::query_scalar(query)
                    .fetch_all(&mut self.postgresql().await)
                    .await
            }
            Database::Sqlite => {
                sqlx::query_scalar(query)
                    .fetch_all(&mut self.sqlite().await)
                    .await
            }
        }
        .expect("the query runs")
    }

    pub async fn postgresql(&self) -> PgConnection {
        PgConnection::connect(self.database_url())
            .await
            .expect("PostgreSQL answers")
    }

    async fn sqlite(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::connect(self.database_url())
            .await
            .expect("the file opens");
        let patience = format!("PRAGMA busy_timeout = {}", PATIENCE.as_millis());
        sqlx::query(AssertSqlSafe(patience))
            .execute(&mut connection)
            .await
            .expect("a busy timeout");
        connection
    }

    async fn redis_connection(&self) -> redis::aio::MultiplexedConnection {
        redis::Client::open(self.redis_url())
            .expect("a Redis URL")
            .get_multiplexed_async_connection()
            .await
            .expect("Redis answers")
    }
}
