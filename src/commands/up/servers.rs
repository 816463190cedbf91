//! The private servers of a run, and the addresses that its replicas are told.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use super::plan::{Database, Plan, Source};
use super::sqlite_file;
use super::supervision::Supervisor;
use crate::commands::address::sqlite_url;
use crate::commands::{lock_servers, say};
use crate::lock::LockName;
use crate::stack::child::Program;
use crate::stack::found::{Known, LOCK_SERVERS};
use crate::stack::{
    DynamoDbServer, EtcdServer, Kind, Launcher, PostgresServer, RedisServer, Server,
    ZooKeeperServer, dynamodb, redlock,
};

/// What runs for nobody else.
pub struct Servers {
    pub postgres: Option<PostgresServer>,
    redis: Option<RedisServer>,
    redlock: Vec<RedisServer>,
    etcd: Option<EtcdServer>,
    zookeeper: Option<ZooKeeperServer>,
    dynamodb: Option<DynamoDbServer>,
}

/// Where the replicas find what they share. They may carry passwords.
pub struct Addresses {
    pub database: String,
    lock_servers: BTreeMap<Known, String>,
    zookeeper_session_ms: u32,
    /// A DynamoDB Local of our own believes any credentials, but there must be some.
    private_dynamodb: bool,
}

impl Servers {
    /// Starts all of them at once.
    pub async fn start(plan: &Plan, launcher: &Launcher, folder: &Path) -> anyhow::Result<Self> {
        let (postgres, redis, redlock, etcd, zookeeper, dynamodb) = tokio::try_join!(
            start_postgres(plan, launcher, folder),
            start(plan, launcher, folder),
            start_redlock(plan, launcher, folder),
            start(plan, launcher, folder),
            start(plan, launcher, folder),
            start(plan, launcher, folder),
        )?;
        Ok(Self {
            postgres,
            redis,
            redlock,
            etcd,
            zookeeper,
            dynamodb,
        })
    }

    /// The private lock servers with their ports, in words.
    pub fn ports(&self) -> BTreeMap<Known, String> {
        LOCK_SERVERS
            .into_iter()
            .filter_map(|server| Some((server, self.ports_of(server)?)))
            .collect()
    }

    fn ports_of(&self, server: Known) -> Option<String> {
        match server {
            Known::Redis => self.redis.as_ref().map(port),
            Known::Redlock if self.redlock.is_empty() => None,
            Known::Redlock => Some(self.redlock.iter().map(port).collect::<Vec<_>>().join(", ")),
            Known::Etcd => self.etcd.as_ref().map(port),
            Known::ZooKeeper => self.zookeeper.as_ref().map(port),
            Known::DynamoDb => self.dynamodb.as_ref().map(port),
            Known::Postgres => None,
        }
    }

    fn url_of(&self, server: Known) -> Option<String> {
        match server {
            Known::Redis => self.redis.as_ref().map(Server::url),
            Known::Redlock => Some(
                self.redlock
                    .iter()
                    .map(Server::url)
                    .collect::<Vec<_>>()
                    .join(","),
            ),
            Known::Etcd => self.etcd.as_ref().map(Server::url),
            Known::ZooKeeper => self.zookeeper.as_ref().map(Server::url),
            Known::DynamoDb => self.dynamodb.as_ref().map(Server::url),
            Known::Postgres => None,
        }
    }

    /// Hands each of them over to be kept running.
    pub fn supervise(self, supervisor: &mut Supervisor) {
        watch(supervisor, self.redis);
        watch(supervisor, self.redlock);
        watch(supervisor, self.etcd);
        watch(supervisor, self.zookeeper);
        watch(supervisor, self.dynamodb);
        if let Some(postgres) = self.postgres {
            supervisor.watch(postgres);
        }
    }
}

fn port<K: Kind>(server: &Server<K>) -> String {
    server.port().to_string()
}

fn watch<K: Kind>(supervisor: &mut Supervisor, servers: impl IntoIterator<Item = Server<K>>) {
    for server in servers {
        supervisor.watch(server);
    }
}

/// What to do about a server that is found and does not work.
const WITHOUT_IT: &str = "a lock server does not start, and --servers can leave it out";

fn is_private(plan: &Plan, server: Known) -> bool {
    plan.lock_servers.get(&server) == Some(&Source::Private)
}

async fn start<K: Kind>(
    plan: &Plan,
    launcher: &Launcher,
    folder: &Path,
) -> anyhow::Result<Option<Server<K>>> {
    if !is_private(plan, K::KNOWN) {
        return Ok(None);
    }
    let started = Server::start(launcher, folder).await;
    started.map(Some).context(WITHOUT_IT)
}

async fn start_redlock(
    plan: &Plan,
    launcher: &Launcher,
    folder: &Path,
) -> anyhow::Result<Vec<RedisServer>> {
    if !is_private(plan, Known::Redlock) {
        return Ok(Vec::new());
    }
    let started = redlock::start(launcher, folder).await;
    started.context(WITHOUT_IT)
}

async fn start_postgres(
    plan: &Plan,
    launcher: &Launcher,
    folder: &Path,
) -> anyhow::Result<Option<PostgresServer>> {
    if plan.database != Database::Postgres {
        return Ok(None);
    }
    let postgres = PostgresServer::start(launcher, folder).await?;
    if let Some(elsewhere) = postgres.stands_elsewhere() {
        say(format!(
            "PostgreSQL's data stands in {}: it does not run as root, and the user it runs as cannot reach {}",
            elsewhere.display(),
            folder.display()
        ));
    }
    Ok(Some(postgres))
}

impl Addresses {
    pub fn of(plan: &Plan, servers: &Servers, folder: &Path) -> anyhow::Result<Self> {
        let database = match (&plan.database, &servers.postgres) {
            (Database::Url(url), _) => url.clone(),
            (_, Some(postgres)) => postgres.url(),
            (_, None) => sqlite_url(&sqlite_file(folder))?,
        };
        let lock_servers = plan.lock_servers.iter().filter_map(|(server, source)| {
            let address = match source {
                Source::Given(address) => Some(address.clone()),
                Source::Private => servers.url_of(*server),
            };
            Some((*server, address?))
        });
        Ok(Self {
            database,
            lock_servers: lock_servers.collect(),
            zookeeper_session_ms: plan.zookeeper_session_ms,
            private_dynamodb: is_private(plan, Known::DynamoDb),
        })
    }

    /// The lock systems that have a server.
    pub fn locks(&self) -> Vec<LockName> {
        let servers = self.lock_servers.keys();
        servers.filter_map(|server| server.lock()).collect()
    }

    /// Tells them to a replica, in its environment: everybody can read its command line.
    pub fn tell(&self, replica: Program) -> Program {
        // Two replicas under one advertised address would answer for each other.
        let mut replica = replica
            .env("DATABASE_URL", &self.database)
            .env(
                "DOUBLEBOOK_ZOOKEEPER_SESSION_MS",
                self.zookeeper_session_ms.to_string(),
            )
            .without_env("DOUBLEBOOK_ADVERTISE");
        for server in LOCK_SERVERS {
            let variable = lock_servers::variable(server);
            replica = match self.lock_servers.get(&server) {
                Some(address) => replica.env(variable, address),
                None => replica.without_env(variable),
            };
        }
        if self.private_dynamodb {
            for (name, value) in dynamodb::CREDENTIALS {
                replica = replica.env(name, value);
            }
        }
        replica
    }
}
