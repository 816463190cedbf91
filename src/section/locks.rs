//! The lock systems that this replica has, and whether each talks to the server that all replicas mean.
//!
//! Two hosts, each with a Redis of its own, must not pass for one lock. So each lock server holds a random id that
//! the database knows; a replica compares them whenever it has made a new connection or the database names another
//! server. A server without an id (new, or emptied) is given one, and the database learns it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use uuid::Uuid;

use super::SectionError;
use crate::database::Database;
use crate::lock::systems::{Mutex as MutexSystem, Redis, Redlock, Table};
use crate::lock::{LockName, LockService, LockSystem, ServerId};
use crate::room::{LockServer, Room, store};

/// How long storing a server's id may take.
const STORE_LIMIT: Duration = Duration::from_secs(5);

/// Where the lock servers of a replica are. What is not given is not used.
#[derive(Debug, Clone, Default)]
pub struct LockServers {
    /// The URL of the one Redis.
    pub redis: Option<String>,
    /// The URLs of the nodes of a Redlock; empty when there is none.
    pub redlock: Vec<String>,
    /// The URLs of the members of an etcd cluster; empty when there is none.
    pub etcd: Vec<String>,
    /// A ZooKeeper ensemble.
    pub zookeeper: Option<ZooKeeperServers>,
    /// The URL of a DynamoDB.
    pub dynamodb: Option<String>,
}

/// A ZooKeeper ensemble, and what is asked of it.
#[derive(Debug, Clone)]
pub struct ZooKeeperServers {
    /// `host:port`, with commas between them and perhaps a folder after the last.
    pub servers: String,
    /// How long a session should last that is not heard of.
    pub session: Duration,
}

/// The lock systems of this replica.
#[derive(Debug)]
pub struct Locks {
    systems: HashMap<LockName, System>,
}

#[derive(Debug)]
struct System {
    service: LockService,
    compared: Mutex<Option<Compared>>,
}

/// The server that was found to be the one that the database knows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Compared {
    id: String,
    /// How many connections had been made then.
    connections: u64,
}

impl Locks {
    /// The systems that need no server of their own, and those whose servers are given.
    ///
    /// # Errors
    /// An address that is none.
    pub fn new(database: &Database, servers: &LockServers) -> anyhow::Result<Self> {
        let mut systems: Vec<Arc<dyn LockSystem>> = vec![
            Arc::new(MutexSystem::default()),
            Arc::new(Table::new(database.leases())),
        ];
        if let Some(url) = &servers.redis {
            systems.push(Arc::new(Redis::open(url)?));
        }
        if !servers.redlock.is_empty() {
            systems.push(Arc::new(Redlock::open(&servers.redlock)?));
        }
        #[cfg(feature = "dynamodb")]
        if let Some(url) = &servers.dynamodb {
            systems.push(Arc::new(crate::lock::systems::DynamoDb::open(url)?));
        }
        #[cfg(feature = "etcd")]
        if !servers.etcd.is_empty() {
            systems.push(Arc::new(crate::lock::systems::Etcd::open(&servers.etcd)?));
        }
        #[cfg(feature = "zookeeper")]
        if let Some(ZooKeeperServers { servers, session }) = &servers.zookeeper {
            let zookeeper = crate::lock::systems::ZooKeeper::open(servers, *session)?;
            systems.push(Arc::new(zookeeper));
        }
        let systems = systems
            .into_iter()
            .map(|system| {
                let name = system.name();
                (
                    name,
                    System {
                        service: LockService::new(system),
                        compared: Mutex::default(),
                    },
                )
            })
            .collect();
        Ok(Self { systems })
    }

    /// Compares all servers that can be reached with those that the database knows, all at once: one that is down
    /// must not keep a replica from starting for as long as it is waited for. It is compared by the first attempt that
    /// finds it there again.
    pub async fn compare_all(&self, database: &Database) {
        let all = self.systems.iter().map(async |(name, system)| {
            if let Err(error) = system.compare_now(*name, database).await {
                tracing::warn!(lock = %name, "{error}");
            }
        });
        join_all(all).await;
    }

    /// Why a lock system cannot be chosen on this replica, if it cannot.
    pub fn why_not(&self, name: LockName) -> Option<String> {
        // `row` is the database's own.
        if name == LockName::Row || self.systems.contains_key(&name) {
            return None;
        }
        Some(match name.missing_feature() {
            Some(feature) => format!(
                "not compiled in: build this program with --features {feature}, or full for all"
            ),
            None => format!("not configured: {}", how_to_configure(name)),
        })
    }

    /// The lock system of a new room: Redis where it is there, else the lock table.
    pub fn default_lock(&self) -> LockName {
        if self.systems.contains_key(&LockName::Redis) {
            LockName::Redis
        } else {
            LockName::Table
        }
    }

    /// The service behind a room's lock system, after its server was compared.
    ///
    /// # Errors
    /// [`SectionError::LockUnavailable`], also when the server is not the one that the database knows.
    pub async fn of(&self, room: &Room, database: &Database) -> Result<&LockService, SectionError> {
        let name = room.switches.lock;
        let Some(system) = self.systems.get(&name) else {
            let why = self.why_not(name).unwrap_or_default();
            return Err(SectionError::LockUnavailable(format!(
                "this replica has no lock system {name}: {why}"
            )));
        };
        let known = room.lock_server.as_ref();
        if !system.is_compared_with(known) {
            system.compare(name, known, database).await?;
        }
        Ok(&system.service)
    }

    /// Whether nothing was reconnected since the server of this lock system was compared.
    pub fn is_compared(&self, name: LockName) -> bool {
        self.systems.get(&name).is_some_and(|system| {
            let compared = system.compared();
            compared.is_none_or(|compared| {
                compared.connections == system.service.system().connections()
            })
        })
    }

    /// The services of all lock systems of this replica.
    pub fn services(&self) -> impl Iterator<Item = &LockService> {
        self.systems.values().map(|system| &system.service)
    }

    /// Waits, at most for `limit`, until everything that is being given back has been.
    pub async fn settle(&self, limit: Duration) {
        let all = self
            .systems
            .values()
            .map(|system| system.service.settle(limit));
        join_all(all).await;
    }
}

/// Which setting a lock system needs, and what brings its server.
fn how_to_configure(name: LockName) -> &'static str {
    match name {
        LockName::Redis => "REDIS_URL is not set (Debian package redis-server)",
        LockName::Redlock => "REDLOCK_URLS is not set (Debian package redis-server)",
        LockName::Etcd => "ETCD_ENDPOINTS is not set (Debian package etcd-server)",
        LockName::Zookeeper => "ZOOKEEPER_SERVERS is not set (Debian package zookeeper)",
        LockName::Dynamodb => {
            "DYNAMODB_ENDPOINT is not set (npm package amplify-dynamodb-simulator)"
        }
        LockName::Mutex | LockName::Table | LockName::Row => "it needs no setting",
    }
}

impl System {
    fn compared(&self) -> Option<Compared> {
        self.compared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn is_compared_with(&self, known: Option<&LockServer>) -> bool {
        match (self.compared(), known) {
            (Some(compared), Some(known)) => {
                compared.id == known.id
                    && compared.connections == self.service.system().connections()
            }
            // Without a connection there is no server to compare: `mutex` and `table`.
            (None, None) => !self.has_server(),
            _ => false,
        }
    }

    fn has_server(&self) -> bool {
        !matches!(self.service.name(), LockName::Mutex | LockName::Table)
    }

    async fn compare_now(&self, name: LockName, database: &Database) -> Result<(), SectionError> {
        let mut session = database.read(STORE_LIMIT).await?;
        let known = store::lock_server(&mut session, name).await?;
        drop(session);
        self.compare(name, known.as_ref(), database).await
    }

    async fn compare(
        &self,
        name: LockName,
        known: Option<&LockServer>,
        database: &Database,
    ) -> Result<(), SectionError> {
        let unavailable =
            |error: crate::lock::LockError| SectionError::LockUnavailable(error.to_string());
        let drawn = Uuid::new_v4().to_string();
        let answered = self.service.system().server(&drawn).await;
        // Before anything else is waited for: a connection made after this one may lead elsewhere.
        let connections = self.service.system().connections();
        let Some(server) = answered.map_err(unavailable)? else {
            return Ok(());
        };
        match known {
            Some(known) if known.id == server.id => {}
            // The server has just been given this id: it was new, or it was emptied.
            _ if server.id == drawn => store(name, &server, database).await?,
            None => store(name, &server, database).await?,
            Some(_) => compare_with_fresh(name, &server, database).await?,
        }
        *self.compared.lock().unwrap_or_else(PoisonError::into_inner) = Some(Compared {
            id: server.id,
            connections,
        });
        Ok(())
    }
}

/// What the room brought along may be older than what another replica has just stored.
async fn compare_with_fresh(
    name: LockName,
    found: &ServerId,
    database: &Database,
) -> Result<(), SectionError> {
    let mut session = database.read(STORE_LIMIT).await?;
    match store::lock_server(&mut session, name).await? {
        Some(known) if known.id != found.id => Err(SectionError::LockUnavailable(format!(
            "{name} at {mine} (id {mine_id}) is not the server that the other replicas use: the database knows \
             {theirs} (id {theirs_id}). Point all replicas at one server; to make this one theirs, delete {kept_in} \
             there",
            mine = found.address,
            mine_id = found.id,
            theirs = known.address,
            theirs_id = known.id,
            kept_in = found.kept_in,
        ))),
        _ => Ok(()),
    }
}

async fn store(name: LockName, server: &ServerId, database: &Database) -> Result<(), SectionError> {
    let mut transaction = database.begin(STORE_LIMIT).await?;
    let known = LockServer {
        id: server.id.clone(),
        address: server.address.clone(),
    };
    store::store_lock_server(&mut transaction, name, &known).await?;
    transaction
        .commit()
        .await
        .map_err(|error| SectionError::DatabaseUnavailable(error.to_string()))?;
    tracing::info!(lock = %name, address = server.address, "the database now knows this lock server");
    Ok(())
}
