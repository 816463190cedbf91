//! What can go wrong at the database, by kind: callers decide by the kind, people read the text in the log.

use sqlx::postgres::PgDatabaseError;

/// A failure of the database, told apart by what a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database cannot be reached, is read-only or is stopping.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    /// The database is there, but a statement or a connection was not to be had within its limit.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The database ended this transaction to break a deadlock or a serialization conflict.
    #[error("the database ended the transaction: {0}")]
    Deadlock(String),
    /// The program and its database disagree: a fault of ours.
    #[error("the database refused a statement: {0}")]
    Broken(String),
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(refused) => match refused.try_downcast_ref::<PgDatabaseError>() {
                Some(postgres) => by_sqlstate(postgres.code(), error.to_string()),
                None => by_sqlite_code(refused.code().as_deref(), error.to_string()),
            },
            sqlx::Error::PoolTimedOut => Self::Busy("no free connection".to_owned()),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error.to_string()),
            _ => Self::Broken(error.to_string()),
        }
    }
}

/// See <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn by_sqlstate(code: &str, text: String) -> DatabaseError {
    match code {
        // deadlock_detected, serialization_failure
        "40P01" | "40001" => DatabaseError::Deadlock(text),
        // query_canceled (statement_timeout), lock_not_available (NOWAIT), too_many_connections
        "57014" | "55P03" | "53300" => DatabaseError::Busy(text),
        // read_only_sql_transaction: a standby; idle timeouts; object_not_in_prerequisite_state: not accepting connections
        "25006" | "25P03" | "25P04" | "55000" => DatabaseError::Unavailable(text),
        // connection exceptions, authorization, no such database, insufficient resources, operator intervention,
        // system errors
        _ if ["08", "28", "3D", "53", "57", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            DatabaseError::Unavailable(text)
        }
        _ => DatabaseError::Broken(text),
    }
}

/// See <https://www.sqlite.org/rescode.html>; the low byte is the primary code.
fn by_sqlite_code(code: Option<&str>, text: String) -> DatabaseError {
    let primary = code
        .and_then(|code| code.parse::<u32>().ok())
        .map(|code| code & 0xff);
    match primary {
        // BUSY, LOCKED, PROTOCOL (the race for the log's locks)
        Some(5 | 6 | 15) => DatabaseError::Busy(text),
        // READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB
        Some(8 | 10 | 11 | 13 | 14 | 26) => DatabaseError::Unavailable(text),
        _ => DatabaseError::Broken(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_is_told_from_a_timeout_and_from_a_stopping_server() {
        let kind = |code| by_sqlstate(code, String::new());
        assert!(matches!(kind("40P01"), DatabaseError::Deadlock(_)));
        assert!(matches!(kind("57014"), DatabaseError::Busy(_)));
        assert!(matches!(kind("57P01"), DatabaseError::Unavailable(_)));
        assert!(matches!(kind("42P01"), DatabaseError::Broken(_)));
    }

    #[test]
    fn extended_codes_of_sqlite_keep_their_primary_kind() {
        // SQLITE_BUSY_SNAPSHOT is 5 | (2 << 8).
        assert!(matches!(
            by_sqlite_code(Some("517"), String::new()),
            DatabaseError::Busy(_)
        ));
        assert!(matches!(
            by_sqlite_code(Some("1"), String::new()),
            DatabaseError::Broken(_)
        ));
    }
}
