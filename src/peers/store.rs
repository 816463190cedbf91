//! The table in which replicas find each other.

use super::Replica;
use crate::app::Me;
use crate::database::{DatabaseError, Session, Transaction, sql};

/// Whoever stood at this address under another name is gone: this process answers there now.
pub(super) async fn put(transaction: &mut Transaction, me: &Me) -> Result<(), DatabaseError> {
    let text = "DELETE FROM replica
                WHERE url = $1
                  AND name <> $2";
    let gone = sql(text).bind(me.url.as_str()).bind(me.name.as_str());
    transaction.execute(gone).await?;
    let text = "INSERT INTO replica (name, url, pid)
                VALUES ($1, $2, $3)
                ON CONFLICT (name) DO UPDATE
                SET url = excluded.url, pid = excluded.pid";
    let upsert = sql(text)
        .bind(me.name.as_str())
        .bind(me.url.as_str())
        .bind(i64::from(me.pid));
    transaction.execute(upsert).await.map(drop)
}

pub(super) async fn remove(transaction: &mut Transaction, me: &Me) -> Result<(), DatabaseError> {
    let text = "DELETE FROM replica
                WHERE name = $1
                  AND url = $2
                  AND pid = $3";
    let delete = sql(text)
        .bind(me.name.as_str())
        .bind(me.url.as_str())
        .bind(i64::from(me.pid));
    transaction.execute(delete).await.map(drop)
}

pub(super) async fn clear(transaction: &mut Transaction) -> Result<(), DatabaseError> {
    transaction
        .execute(sql("DELETE FROM replica"))
        .await
        .map(drop)
}

pub(super) async fn all(session: &mut Session) -> Result<Vec<Replica>, DatabaseError> {
    let text = "SELECT name, url, pid
                FROM replica
                ORDER BY name";
    let rows = session.all(sql(text)).await?;
    rows.iter()
        .map(|row| {
            Ok(Replica {
                name: row.text("name")?,
                url: row.text("url")?,
                pid: row.int("pid")?,
                alive: false,
                last_seen: None,
            })
        })
        .collect()
}
