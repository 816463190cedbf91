//! Addresses of databases and lock servers as people type them.
//!
//! They are checked before anything is started, and never repeated in a message: they may carry a password.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::UsageError;

/// Fails unless this is the URL of a database we can use; `setting` is the name people know it by.
pub fn check_database(setting: &str, url: &str) -> Result<(), UsageError> {
    let is_valid = match url.split_once(':') {
        Some(("postgres" | "postgresql", _)) => PgConnectOptions::from_str(url).is_ok(),
        Some(("sqlite", _)) => SqliteConnectOptions::from_str(url).is_ok(),
        _ => false,
    };
    if is_valid {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "{setting} is no URL of a database, such as postgres://user@host/name or sqlite:file.db"
    )))
}

/// Fails unless this is the URL of a Redis we can use; `setting` is the name people know it by.
pub fn check_redis(setting: &str, url: &str) -> Result<(), UsageError> {
    match redis::Client::open(url) {
        Ok(_) => Ok(()),
        Err(_) => Err(UsageError::new(format!(
            "{setting} is no URL of a Redis, such as redis://host:6379"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_database, check_redis};

    #[test]
    fn usable_addresses_pass() {
        for url in [
            "postgres://ana@db/shop",
            "postgresql://ana:secret@db:5433/shop",
            "sqlite:shop.db",
        ] {
            assert!(check_database("--database", url).is_ok(), "{url}");
        }
        assert!(check_redis("REDIS_URL", "redis://127.0.0.1:6379").is_ok());
    }

    #[test]
    fn others_are_refused_without_being_repeated() {
        for url in [
            "mysql://ana:secret@db",
            "postgres://ana:secret@:db:x",
            "secret",
            "",
        ] {
            let line = check_database("--database", url).unwrap_err().to_string();
            assert!(
                line.starts_with("--database") && !line.contains("secret"),
                "{line}"
            );
        }
        let line = check_redis("REDIS_URL", "http://secret@x")
            .unwrap_err()
            .to_string();
        assert!(
            line.starts_with("REDIS_URL") && !line.contains("secret"),
            "{line}"
        );
    }
}
