//! A private ZooKeeper, and what a stranger sees and does there.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use doublebook::{
    lock::{LockService, systems::ZooKeeper},
    stack::{Launcher, ZooKeeperServer},
};
use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;
use tokio::sync::Mutex;
use zookeeper_client::{Client, Error};

use crate::pair::{PATIENCE, at_once, eventually, stands_still};

/// A server that ends with its value.
pub struct PrivateZooKeeper {
    pub server: ZooKeeperServer,
    _folder: TempDir,
}

/// A folder at a server.
#[derive(Debug, Clone)]
pub struct Folder {
    address: String,
}

impl PrivateZooKeeper {
    pub async fn start() -> Result<Self> {
        let folder = folder_in_memory()?;
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
        let server = ZooKeeperServer::start(&launcher, folder.path())
            .await
            .context("ZooKeeper starts (Debian: zookeeper, default-jre-headless)")?;
        let started = Self {
            server,
            _folder: folder,
        };
        started.warm_up().await?;
        Ok(started)
    }

    /// A Java machine loads what it needs when it is first asked for it, which on a busy machine takes seconds. Where
    /// it never becomes swift, the tests must do with it as it is.
    async fn warm_up(&self) -> Result<()> {
        const SWIFT: Duration = Duration::from_millis(200);
        let service = LockService::new(Arc::new(self.folder().open(PATIENCE)?));
        let warm = eventually("the server answers swiftly", async || {
            let began = Instant::now();
            let held = service.acquire(at_once(&["warm", "up"])).await;
            let taken = service.acquire(at_once(&["warm"])).await;
            let confirmed = match &held {
                Ok(held) => held.confirm().await.is_ok(),
                Err(_) => false,
            };
            drop((held, taken));
            service.settle(PATIENCE).await && confirmed && began.elapsed() < SWIFT
        });
        if let Err(slow) = warm.await {
            println!("{slow}");
        }
        Ok(())
    }

    /// The one that tests share, since a Java machine takes seconds to start. It ends with the last one that uses it.
    pub async fn shared() -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<PrivateZooKeeper>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Self::start().await?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

    /// Freezes it, and waits until the last of its threads stands still.
    pub async fn pause(&mut self) -> Result<()> {
        self.server.pause()?;
        stands_still(self.server.pid()).await
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.server.port()).into()
    }

    /// A folder that nobody else uses, reached directly.
    pub fn folder(&self) -> Folder {
        Folder::at(self.address())
    }
}

impl Drop for PrivateZooKeeper {
    /// Before its folder goes.
    fn drop(&mut self) {
        let _ = kill(self.server.pid(), Signal::SIGKILL);
    }
}

impl Folder {
    /// A new one, reached through this address.
    pub fn at(server: SocketAddr) -> Self {
        let name: u64 = rand::random();
        Self {
            address: format!("{server}/tests/{name:x}"),
        }
    }

    /// The same one, reached through another address.
    pub fn through(&self, server: SocketAddr) -> Self {
        let (_, folder) = self.address.split_once('/').expect("a folder");
        Self {
            address: format!("{server}/{folder}"),
        }
    }

    /// A client of its own, as a replica has.
    pub fn open(&self, session: Duration) -> Result<ZooKeeper> {
        Ok(ZooKeeper::open(&self.address, session)?)
    }

    async fn client(&self) -> Result<Client> {
        Ok(Client::connect(&self.address).await?)
    }

    /// Who stands in the line of a key, by its name in the tree; nobody if there is no such line.
    pub async fn line(&self, name: &str) -> Result<Vec<String>> {
        let line = self.client().await?;
        match line.list_children(&path(name)).await {
            Err(Error::NoNode) => Ok(Vec::new()),
            nodes => Ok(nodes?),
        }
    }

    /// The lines that are there, by their names in the tree.
    pub async fn lines(&self) -> Result<Vec<String>> {
        Ok(self
            .client()
            .await?
            .list_children("/doublebook/locks")
            .await?)
    }

    /// How many nodes are in all lines.
    pub async fn nodes(&self) -> Result<usize> {
        let mut nodes = 0;
        for name in self.lines().await? {
            nodes += self.line(&name).await?.len();
        }
        Ok(nodes)
    }

    /// Deletes all nodes of a line, as a vandal would.
    pub async fn clear(&self, name: &str) -> Result<()> {
        let client = self.client().await?;
        for node in client.list_children(&path(name)).await? {
            client
                .delete(&format!("{}/{node}", path(name)), None)
                .await?;
        }
        Ok(())
    }

    /// Deletes the newest node of a line.
    pub async fn delete_newest(&self, name: &str) -> Result<()> {
        let client = self.client().await?;
        let mut newest = (0, String::new());
        for node in client.list_children(&path(name)).await? {
            let node = format!("{}/{node}", path(name));
            let stat = client.check_stat(&node).await?.context("it has left")?;
            newest = newest.max((stat.czxid, node));
        }
        Ok(client.delete(&newest.1, None).await?)
    }

    /// Removes an empty line, as ZooKeeper does after a while.
    pub async fn remove_line(&self, name: &str) -> Result<()> {
        match self.client().await?.delete(&path(name), None).await {
            // ZooKeeper itself was faster.
            Ok(()) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// ZooKeeper waits for the disk with each write, and the disk of a busy machine can take longer than a session lasts.
fn folder_in_memory() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    })
}

fn path(line: &str) -> String {
    format!("/doublebook/locks/{line}")
}
