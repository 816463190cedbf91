//! Where the lock servers are that run already, as people set it: one group of settings for `serve` and `up`.

use std::time::Duration;

use clap::Args;

use super::{UsageError, address};
use crate::lock::systems::Redlock;
use crate::section::{LockServers, ZooKeeperServers};
use crate::stack::found::Known;

/// Lock servers that run already.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Lock servers that run already")]
pub struct LockServerArgs {
    /// The Redis of the lock system redis
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    pub redis_url: Option<String>,

    /// The nodes of the lock system redlock: an odd number of Redis servers that know nothing of each other, with
    /// commas between them
    #[arg(
        long,
        env = "REDLOCK_URLS",
        hide_env_values = true,
        value_name = "URLS"
    )]
    pub redlock_urls: Option<String>,

    /// The members of the etcd cluster, such as http://host:2379, with commas between them
    #[arg(
        long,
        env = "ETCD_ENDPOINTS",
        hide_env_values = true,
        value_name = "URLS"
    )]
    pub etcd_endpoints: Option<String>,

    /// The ZooKeeper ensemble, such as host:2181,host:2181/folder
    #[arg(long, env = "ZOOKEEPER_SERVERS", value_name = "SERVERS")]
    pub zookeeper_servers: Option<String>,

    /// How long a ZooKeeper session lasts that is not heard of; the ensemble may raise it
    #[arg(long, env = "DOUBLEBOOK_ZOOKEEPER_SESSION_MS", value_name = "MS", default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(100..=600_000))]
    pub zookeeper_session_ms: u32,

    /// The DynamoDB of the lock system dynamodb, with credentials from the usual AWS_* variables
    #[arg(long, env = "DYNAMODB_ENDPOINT", value_name = "URL")]
    pub dynamodb_endpoint: Option<String>,
}

/// The environment variable that tells a replica where a lock server is.
pub fn variable(server: Known) -> &'static str {
    match server {
        Known::Redis => "REDIS_URL",
        Known::Redlock => "REDLOCK_URLS",
        Known::Etcd => "ETCD_ENDPOINTS",
        Known::ZooKeeper => "ZOOKEEPER_SERVERS",
        Known::DynamoDb => "DYNAMODB_ENDPOINT",
        Known::Postgres => "DATABASE_URL",
    }
}

/// The flag and the variable of a lock server's address, for messages: the flag is called as the variable is.
fn setting(server: Known) -> String {
    let variable = variable(server);
    let flag = variable.to_lowercase().replace('_', "-");
    format!("--{flag} ({variable})")
}

impl LockServerArgs {
    /// The address that was given. A variable that is set to nothing, as in many compose files, is not set.
    pub fn given(&self, server: Known) -> Option<&str> {
        let given = match server {
            Known::Redis => &self.redis_url,
            Known::Redlock => &self.redlock_urls,
            Known::Etcd => &self.etcd_endpoints,
            Known::ZooKeeper => &self.zookeeper_servers,
            Known::DynamoDb => &self.dynamodb_endpoint,
            Known::Postgres => &None,
        };
        given.as_deref().filter(|address| !address.is_empty())
    }

    /// Checks one address.
    ///
    /// # Errors
    /// One that cannot be used, or that this program was built without the means to use. It is not repeated.
    pub fn check(&self, server: Known) -> Result<(), UsageError> {
        let Some(given) = self.given(server) else {
            return Ok(());
        };
        let setting = &setting(server);
        if let Some(feature) = server.missing_feature() {
            return Err(UsageError::new(format!(
                "{setting}: this program was built without it; build it with --features {feature}"
            )));
        }
        match server {
            Known::Redis => address::check_redis(setting, given),
            Known::Redlock => check_redlock(setting, &list(given)),
            Known::Etcd => list(given)
                .iter()
                .try_for_each(|url| address::check_http(setting, url)),
            Known::DynamoDb => address::check_http(setting, given),
            Known::ZooKeeper => address::check_zookeeper(setting, given),
            Known::Postgres => Ok(()),
        }
    }

    /// Where a replica finds its lock servers.
    ///
    /// # Errors
    /// The first address that cannot be used.
    pub fn checked(&self) -> Result<LockServers, UsageError> {
        for server in crate::stack::found::LOCK_SERVERS {
            self.check(server)?;
        }
        let given = |server| self.given(server).map(str::to_owned);
        Ok(LockServers {
            redis: given(Known::Redis),
            redlock: self.given(Known::Redlock).map(list).unwrap_or_default(),
            etcd: self.given(Known::Etcd).map(list).unwrap_or_default(),
            zookeeper: given(Known::ZooKeeper).map(|servers| ZooKeeperServers {
                servers,
                session: Duration::from_millis(self.zookeeper_session_ms.into()),
            }),
            dynamodb: given(Known::DynamoDb),
        })
    }
}

/// What stands between commas.
fn list(setting: &str) -> Vec<String> {
    setting
        .split(',')
        .map(|one| one.trim().to_owned())
        .collect()
}

fn check_redlock(setting: &str, urls: &[String]) -> Result<(), UsageError> {
    match Redlock::open(urls) {
        Ok(_) => Ok(()),
        Err(error) => Err(UsageError::new(format!("{setting}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redlock(urls: &str) -> LockServerArgs {
        LockServerArgs {
            redlock_urls: Some(urls.to_owned()),
            ..LockServerArgs::default()
        }
    }

    #[test]
    fn a_redlock_has_an_odd_number_of_nodes() {
        let three = "redis://a, redis://b,redis://c";
        let servers = redlock(three).checked().unwrap();
        assert_eq!(servers.redlock, ["redis://a", "redis://b", "redis://c"]);
        for wrong in [
            "redis://a",
            "redis://a,redis://b",
            "redis://a,redis://b,redis://a",
        ] {
            let refused = redlock(wrong).checked().unwrap_err();
            assert!(refused.to_string().contains("REDLOCK_URLS"), "{refused}");
        }
        let wrong = redlock("redis://a,redis://b,http://x:secret@c");
        let refused = wrong.checked().unwrap_err().to_string();
        assert!(!refused.contains("secret"), "{refused}");
    }

    #[test]
    fn a_setting_that_is_empty_is_not_set() {
        assert!(redlock("").checked().unwrap().redlock.is_empty());
    }
}
