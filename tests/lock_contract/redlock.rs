//! A Redlock keeps the contract, and what only a Redlock can do wrong.

use anyhow::Result;
use doublebook::{
    lock::systems::Redlock,
    stack::{Launcher, RedisServer, redlock},
};
use tempfile::TempDir;

use crate::pair::Pair;

/// Five nodes, which end with the test.
struct Nodes {
    servers: Vec<RedisServer>,
    _folder: TempDir,
}

impl Nodes {
    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
        Ok(Self {
            servers: redlock::start(&launcher, folder.path()).await?,
            _folder: folder,
        })
    }

    fn urls(&self) -> Vec<String> {
        self.servers.iter().map(RedisServer::url).collect()
    }

    fn open(&self) -> Result<Redlock> {
        Ok(Redlock::open(&self.urls())?)
    }
}

async fn connect() -> Result<(Pair, Nodes)> {
    let nodes = Nodes::start().await?;
    let pair = Pair::new(nodes.open()?, nodes.open()?);
    Ok((pair, nodes))
}

crate::every_lock!(connect());
crate::leases!(connect());
crate::blind_releases!(connect());
