//! Five real nodes, and what can happen to them.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::Result;
use doublebook::{
    lock::{LockService, systems::Redlock},
    stack::{Launcher, RedisServer, redlock},
};
use futures_util::future::try_join_all;
use tempfile::TempDir;

use crate::{
    forwarder::Forwarder,
    pair::{PATIENCE, eventually},
};

/// They end with the test.
pub struct Nodes {
    servers: Vec<RedisServer>,
    /// Each leads to one node.
    pub cables: Vec<Forwarder>,
    _folder: TempDir,
}

impl Nodes {
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
        let servers = redlock::start(&launcher, folder.path()).await?;
        let ports = servers.iter().map(RedisServer::port);
        let cables = ports.map(|port| Forwarder::start((Ipv4Addr::LOCALHOST, port).into()));
        Ok(Self {
            cables: try_join_all(cables).await?,
            servers,
            _folder: folder,
        })
    }

    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(RedisServer::url).collect()
    }

    pub fn open(&self) -> Result<Redlock> {
        Ok(Redlock::open(&self.urls())?)
    }

    /// Opens it over the cables.
    pub fn open_over_cables(&self) -> Result<Redlock> {
        let addresses = self.cables.iter().map(Forwarder::address);
        let urls: Vec<_> = addresses.map(|at| format!("redis://{at}")).collect();
        Ok(Redlock::open(&urls)?)
    }

    /// Ends it at once, with all that it remembers.
    pub async fn kill(&mut self, node: usize) -> Result<()> {
        self.servers[node].kill().await
    }

    /// Starts it again, empty.
    pub async fn start_again(&mut self, node: usize) -> Result<()> {
        self.servers[node].start_again().await
    }

    /// It stays connected, and answers nothing.
    pub fn pause(&mut self, node: usize) -> Result<()> {
        self.servers[node].pause()
    }

    pub fn resume(&mut self, node: usize) -> Result<()> {
        self.servers[node].resume()
    }

    /// Runs a command on a connection of its own.
    pub async fn run<T: redis::FromRedisValue>(&self, node: usize, words: &[&str]) -> Result<T> {
        let client = redis::Client::open(self.servers[node].url())?;
        // A node that stands still for a moment is none that is down.
        let patient = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = client.get_multiplexed_async_connection_with_config(&patient);
        let mut connection = connecting.await?;
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        Ok(command.query_async(&mut connection).await?)
    }

    /// Whether a node has the key of a lock.
    pub async fn has(&self, node: usize, name: &str) -> Result<bool> {
        let key = format!("{{doublebook}}:redlock:lock:{name}");
        self.run(node, &["EXISTS", &key]).await
    }

    /// Lets a node forget all scripts but one.
    pub async fn knows_only(&self, node: usize, script: &str) -> Result<()> {
        self.run::<()>(node, &["SCRIPT", "FLUSH"]).await?;
        let script = format!("{}{script}", super::scripts::NODE);
        self.run(node, &["SCRIPT", "LOAD", &script]).await
    }

    /// The longest lease that a node was asked for.
    pub async fn longest_lease(&self, node: usize) -> Result<Duration> {
        let record = "{doublebook}:redlock:record";
        let longest = self.run(node, &["HGET", record, "longest"]).await?;
        Ok(Duration::from_millis(longest))
    }

    /// Waits until all nodes have the key of a lock: those that answer late follow after the grant.
    pub async fn until_everywhere(&self, name: &str) -> Result<()> {
        eventually("all nodes have the key", async || {
            for node in 0..self.servers.len() {
                if !self.has(node, name).await.unwrap_or(false) {
                    return false;
                }
            }
            true
        })
        .await
    }

    /// How many locks are left at a node; none where it is down.
    async fn locks(&self, node: usize) -> usize {
        let keys = self.run(node, &["KEYS", "{doublebook}:redlock:lock:*"]);
        keys.await.map_or(0, |keys: Vec<String>| keys.len())
    }

    /// Waits until no node that answers has the key of any lock.
    pub async fn until_free(&self) -> Result<()> {
        eventually("the nodes are free", async || {
            let mut left = 0;
            for node in 0..self.servers.len() {
                left += self.locks(node).await;
            }
            left == 0
        })
        .await
    }

    pub fn mute_all(&self, swallow: bool) {
        for cable in &self.cables {
            cable.mute_all(swallow);
        }
    }
}

/// Asks again and again until the nodes vote.
pub async fn until_available(service: &LockService, texts: &[&str]) -> Result<()> {
    eventually("the nodes vote", async || {
        let wish = doublebook::lock::Wish {
            ttl: Duration::from_millis(300),
            ..crate::pair::wish(texts)
        };
        service.acquire(wish).await.is_ok()
    })
    .await
}
