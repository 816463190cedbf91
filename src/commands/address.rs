//! Addresses of databases and lock servers as people type them.
//!
//! They are checked before anything is started, and never repeated in a message: they may carry a password.

use std::path::Path;
use std::str::FromStr;

use anyhow::Context;
use axum::http::{Uri, uri::Authority};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::UsageError;

/// The URL of a SQLite file; the two characters that mean something in a URL are written by number.
///
/// # Errors
/// When its name is not valid text.
pub fn sqlite_url(file: &Path) -> anyhow::Result<String> {
    let file = file
        .to_str()
        .with_context(|| format!("{} is not valid text", file.display()))?;
    Ok(format!(
        "sqlite:{}",
        file.replace('%', "%25").replace('?', "%3F")
    ))
}

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

/// Fails unless this is the URL of a server that is spoken to over HTTP; `setting` is the name people know it by.
pub fn check_http(setting: &str, url: &str) -> Result<(), UsageError> {
    let uri: Option<Uri> = url.parse().ok();
    match uri
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
    {
        Some(_) => Ok(()),
        None => Err(UsageError::new(format!(
            "{setting} is no URL such as http://host:port"
        ))),
    }
}

/// Fails unless these are servers of a ZooKeeper ensemble, `host:port` with commas between them and perhaps a folder
/// after the last; `setting` is the name people know it by.
pub fn check_zookeeper(setting: &str, servers: &str) -> Result<(), UsageError> {
    let (servers, _folder) = servers.split_once('/').unwrap_or((servers, ""));
    let is_server = |server: &str| {
        server.parse::<Authority>().is_ok_and(|authority| {
            !authority.host().is_empty() && authority.port_u16().is_some() && !server.contains('@')
        })
    };
    if servers.split(',').all(is_server) {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "{setting} is no list of servers such as host:2181,host:2181"
    )))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::str::FromStr;

    use sqlx::sqlite::SqliteConnectOptions;

    use super::{check_database, check_http, check_redis, check_zookeeper, sqlite_url};

    #[test]
    fn any_file_has_a_url() {
        for file in ["/a/doublebook.db", "/50% off?/a b#c.db", "50%25 off?.db"] {
            let options =
                SqliteConnectOptions::from_str(&sqlite_url(Path::new(file)).unwrap()).unwrap();
            assert_eq!(options.get_filename(), Path::new(file));
        }
    }

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
        assert!(check_http("ETCD_ENDPOINTS", "http://127.0.0.1:2379").is_ok());
        for servers in [
            "a:2181",
            "a:2181,[::1]:2182,10.0.0.1:2181",
            "a:2181/folder/b",
        ] {
            assert!(
                check_zookeeper("ZOOKEEPER_SERVERS", servers).is_ok(),
                "{servers}"
            );
        }
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

    #[test]
    fn addresses_of_other_servers_are_checked_too() {
        for url in ["", "host:2379", "redis://host", "http://"] {
            assert!(check_http("ETCD_ENDPOINTS", url).is_err(), "{url}");
        }
        for servers in ["", "a", "a:2181,", "a:b", "http://a:2181", "x@a:2181"] {
            assert!(
                check_zookeeper("ZOOKEEPER_SERVERS", servers).is_err(),
                "{servers}"
            );
        }
    }
}
