//! The systems that are measured. A new one is a file here and a line in [`all`].

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "etcd")]
mod etcd;
mod mutex;
mod redis;
mod redlock;
mod row;
mod rslock;
mod table;
mod table_sqlite;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::any::Any;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use doublebook::lock::{Key, LockService, LockSystem, ReleaseMode, Trips, Waiting, Wish};
use doublebook::stack::Launcher;

pub use self::rslock::RSLOCK;

/// The name of the system whose hand-over is promised.
pub const REDIS: &str = "redis";

/// In the order in which they are shown; without those that this was built without.
pub fn all() -> Vec<Box<dyn System>> {
    vec![
        Box::new(mutex::Mutex),
        Box::new(redis::Redis),
        Box::new(rslock::Rslock),
        Box::new(redlock::Redlock),
        #[cfg(feature = "dynamodb")]
        Box::new(dynamodb::DynamoDb),
        #[cfg(feature = "zookeeper")]
        Box::new(zookeeper::ZooKeeper),
        #[cfg(feature = "etcd")]
        Box::new(etcd::Etcd),
        Box::new(table::Table),
        Box::new(table_sqlite::TableSqlite),
        Box::new(row::Row),
    ]
}

/// One system: how its server is started, how its lock is opened, and which bare requests it is compared with.
#[async_trait(?Send)]
pub trait System {
    /// As settings spell it.
    fn name(&self) -> &'static str;

    /// Whether it excludes other processes, too.
    fn spans_processes(&self) -> bool {
        true
    }

    /// Starts a server of its own, with its data in this folder.
    ///
    /// # Errors
    /// `Missing` when this machine has no such server.
    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server>;

    /// What its server is, and which version.
    async fn version(&self, address: &str) -> Result<String>;

    /// Opens the lock as a replica does, with connections of its own.
    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>>;

    /// The bare requests that a free lock is compared with.
    async fn bare(&self, address: &str) -> Result<Vec<Bare>>;

    /// How many requests for locks the server has answered so far, where it counts them.
    async fn requests(&self, address: &str) -> Result<Option<u64>> {
        let _ = address;
        Ok(None)
    }
}

/// A server, which ends when this is dropped.
pub struct Server {
    pub address: String,
    _process: Box<dyn Any>,
}

impl Server {
    fn new(address: String, process: impl Any) -> Self {
        Self {
            address,
            _process: Box::new(process),
        }
    }
}

/// Something that can be locked.
#[async_trait]
pub trait Lock: Send + Sync {
    /// Takes a key, works, and gives the key back; answers how long it waited for it.
    async fn hold(&self, key: &str, work: fn()) -> Result<Duration>;
}

/// Requests without a lock around them.
pub struct Bare {
    /// What they are.
    pub what: &'static str,
    /// How many times as long a free lock may take, if that is promised.
    pub at_most: Option<f64>,
    /// Sends them once, one after the other.
    pub once: Once,
}

/// Sends some requests once.
pub type Once = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// How many times as long as the same number of bare writes a free lock may take, except in Redis.
const AT_MOST: f64 = 1.25;

/// How long a lease lasts here: nothing may run out while it is measured.
const TTL: Duration = Duration::from_secs(10);

/// How long is waited for a lock.
const WAIT: Duration = Duration::from_secs(60);

/// Each time another owner, as long as ours.
fn owner() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Puts the layers on a lock system, as a replica does.
fn layered(system: impl LockSystem) -> Arc<dyn Lock> {
    Arc::new(LockService::new(Arc::new(system)))
}

#[async_trait]
impl Lock for LockService {
    async fn hold(&self, key: &str, work: fn()) -> Result<Duration> {
        let since = Instant::now();
        let held = self.acquire(wish(key)?).await?;
        let waited = since.elapsed();
        work();
        held.release().await;
        Ok(waited)
    }
}

/// As an attempt wishes for one seat.
fn wish(key: &str) -> Result<Wish> {
    Ok(Wish {
        keys: Key::parse(key)?.into(),
        ttl: TTL,
        renew: true,
        may_freeze: false,
        wait: WAIT,
        waiting: Waiting::Notify,
        release: ReleaseMode::OwnerChecked,
        trips: Trips::default(),
    })
}
