//! One Redis: beside its own two scripts, and beside the textbook's lock, which has no token, no line and no layers.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, Script};
use anyhow::{Context, Result};
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::stack::{Launcher, RedisServer};

use super::{Bare, Lock, Once, REDIS, Server, System, TTL, layered, owner};

pub struct Redis;

static ASK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("../../../src/lock/systems/redis/hand_over.lua"),
        include_str!("../../../src/lock/systems/redis/ask.lua")
    ))
});

static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("../../../src/lock/systems/redis/hand_over.lua"),
        include_str!("../../../src/lock/systems/redis/release.lua")
    ))
});

/// As in the documentation of Redis, "Distributed locks".
static DELETE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end",
    )
});

#[async_trait(?Send)]
impl System for Redis {
    fn name(&self) -> &'static str {
        REDIS
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        start(launcher, folder).await
    }

    async fn version(&self, address: &str) -> Result<String> {
        version(address).await
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        Ok(layered(systems::Redis::open(address)?))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let connection = connect(address).await?;
        Ok(vec![
            Bare {
                what: "its own two scripts",
                at_most: Some(1.15),
                once: own_scripts(connection.clone()),
            },
            Bare {
                what: "SET NX PX and an owner-checked DEL",
                at_most: Some(1.40),
                once: textbook(connection),
            },
        ])
    }

    async fn requests(&self, address: &str) -> Result<Option<u64>> {
        Ok(Some(scripts_run(address).await?))
    }
}

/// A server of its own.
pub async fn start(launcher: &Launcher, folder: &Path) -> Result<Server> {
    let server = RedisServer::start(launcher, folder).await?;
    Ok(Server::new(server.url(), server))
}

/// What the server calls itself.
pub async fn version(address: &str) -> Result<String> {
    let about: String = info(address, "server").await?;
    let version = about
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"))
        .context("no version")?;
    Ok(format!("Redis {version}"))
}

/// How many scripts the server has run.
pub async fn scripts_run(address: &str) -> Result<u64> {
    let stats: String = info(address, "commandstats").await?;
    let calls = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="))
        .and_then(|rest| rest.split(',').next())
        .unwrap_or("0");
    Ok(calls.parse()?)
}

async fn info(address: &str, section: &str) -> Result<String> {
    let mut connection = connect(address).await?;
    let mut command = ::redis::cmd("INFO");
    Ok(command.arg(section).query_async(&mut connection).await?)
}

/// As the lock's own connection: without a limit for answers, which costs a timer for each.
pub async fn connect(address: &str) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let client = Client::open(address)?;
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

/// How long a lease lasts, as Redis counts.
pub fn milliseconds() -> usize {
    TTL.as_millis().try_into().unwrap_or(usize::MAX)
}

fn own_scripts(connection: MultiplexedConnection) -> Once {
    Box::new(move || {
        let mut connection = connection.clone();
        Box::pin(async move {
            const KEYS: [&str; 2] = ["{doublebook}:lock:bare", "{doublebook}:waiters:bare"];
            const CHANNEL: &str = "{doublebook}:process:0123456789abcdef";
            let owner = owner();
            let mut ask = ASK.key(&KEYS);
            ask.key("{doublebook}:token")
                .arg(&owner)
                .arg(CHANNEL)
                .arg(milliseconds())
                .arg(0);
            ask.invoke_async::<Vec<String>>(&mut connection).await?;
            let mut release = RELEASE.key(&KEYS);
            release.arg(&owner).arg(CHANNEL).arg(0);
            release.invoke_async::<usize>(&mut connection).await?;
            Ok(())
        })
    })
}

fn textbook(connection: MultiplexedConnection) -> Once {
    Box::new(move || {
        let mut connection = connection.clone();
        Box::pin(async move {
            let owner = owner();
            let mut set = ::redis::cmd("SET");
            set.arg(&["textbook", &owner, "NX", "PX"])
                .arg(milliseconds())
                .exec_async(&mut connection)
                .await?;
            let mut delete = DELETE.key("textbook");
            delete
                .arg(&owner)
                .invoke_async::<usize>(&mut connection)
                .await?;
            Ok(())
        })
    })
}
