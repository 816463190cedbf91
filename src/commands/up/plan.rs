//! What was asked for: checked, and with its defaults.
//!
//! A plan can be carried out as far as this machine's files and settings tell. Ports are checked apart, since those of
//! a run that was killed become free only after a while.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::UpArgs;
use crate::commands::lock_servers::LockServerArgs;
use crate::commands::{UsageError, address};
use crate::stack::found::{Known, LOCK_SERVERS};
use crate::stack::port;

/// How long the ports of a run that was killed may stay in use: longer than its guards need to end everything.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(6);

/// How often such a port is tried.
const PORT_PAUSE: Duration = Duration::from_millis(100);

/// What `up` is to run.
#[derive(Debug)]
pub struct Plan {
    first_port: u16,
    replicas: u16,
    /// Which database.
    pub database: Database,
    /// Which lock servers, and where they come from.
    pub lock_servers: BTreeMap<Known, Source>,
    /// How long a ZooKeeper session should last that is not heard of.
    pub zookeeper_session_ms: u32,
    missing: Vec<String>,
}

/// The database shared by the replicas.
#[derive(Debug, PartialEq, Eq)]
pub enum Database {
    /// A file in the data folder.
    Sqlite,
    /// A private server.
    Postgres,
    /// One that is there already.
    Url(String),
}

/// Where a lock server comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// One of our own.
    Private,
    /// One that is there already, at this address.
    Given(String),
}

/// What `--servers` says.
#[derive(Debug, PartialEq, Eq)]
enum Servers {
    Auto,
    None,
    Listed(Vec<Known>),
}

impl Plan {
    /// Whether the database is private to this run, so that nobody else's replicas are in it.
    pub fn database_is_ours(&self) -> bool {
        !matches!(self.database, Database::Url(_))
    }

    /// Checks the settings, and that what they ask for by name is installed.
    pub fn new(args: &UpArgs) -> Result<Self, UsageError> {
        if args.port.checked_add(args.replicas - 1).is_none() {
            let (port, replicas) = (args.port, args.replicas);
            return Err(UsageError::new(format!(
                "--port {port} leaves no room for {replicas} replicas: the last port is 65535"
            )));
        }
        let database = Database::parse(&args.database)?;
        let servers = Servers::parse(args.servers.as_deref().unwrap_or_default(), &database)?;
        let lock_servers = choose_all(&servers, &args.lock_servers)?;
        let missing = match servers {
            Servers::Auto => what_is_missing(&lock_servers),
            Servers::None | Servers::Listed(_) => Vec::new(),
        };
        Ok(Self {
            first_port: args.port,
            replicas: args.replicas,
            database,
            lock_servers,
            zookeeper_session_ms: args.lock_servers.zookeeper_session_ms,
            missing,
        })
    }

    /// What is not there, which package brings it, and what that means, a line each.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The names of the replicas, and their ports.
    pub fn replicas(&self) -> impl Iterator<Item = (char, u16)> + use<> {
        ('A'..='Z')
            .zip(self.first_port..)
            .take(usize::from(self.replicas))
    }

    /// Fails if a replica's port is in use. Where the last run was killed, its guards get the time to free it.
    pub async fn check_ports(&self, predecessor_was_killed: bool) -> Result<(), UsageError> {
        let patience = if predecessor_was_killed {
            PREDECESSOR_PATIENCE
        } else {
            Duration::ZERO
        };
        let deadline = Instant::now() + patience;
        for (_, port) in self.replicas() {
            while let Err(error) = port::check_free(port) {
                if Instant::now() >= deadline {
                    return Err(unusable_port(port, &error));
                }
                sleep(PORT_PAUSE).await;
            }
        }
        Ok(())
    }
}

fn unusable_port(port: u16, error: &io::Error) -> UsageError {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            UsageError::new(format!("port {port} is in use; choose others with --port"))
        }
        _ => UsageError::new(format!(
            "port {port} cannot be used ({error}); choose others with --port"
        )),
    }
}

/// What is not there, or not compiled in, and what that means.
fn what_is_missing(chosen: &BTreeMap<Known, Source>) -> Vec<String> {
    let locks = LOCK_SERVERS
        .into_iter()
        .filter(|server| !chosen.contains_key(server))
        .filter_map(|server| {
            let consequence = format!("the lock system {} is off", server.name());
            missing_line(server, &consequence)
        });
    let database = missing_line(Known::Postgres, "--database postgres is off");
    locks.chain(database).collect()
}

fn missing_line(server: Known, consequence: &str) -> Option<String> {
    if let Some(feature) = server.missing_feature() {
        return Some(format!(
            "{} is not compiled in; without --features {feature} {consequence}",
            server.name()
        ));
    }
    let missing = server.required().err()?;
    Some(format!("{missing}; without it {consequence}"))
}

fn required(setting: &str, server: Known) -> Result<(), UsageError> {
    server
        .required()
        .map(drop)
        .map_err(|missing| UsageError::new(format!("{setting}: {missing}")))
}

impl Database {
    fn parse(setting: &str) -> Result<Self, UsageError> {
        match setting {
            // A variable that is set to nothing, as in many compose files, is not set.
            "" | "sqlite" => Ok(Self::Sqlite),
            "postgres" => required("--database postgres", Known::Postgres).map(|()| Self::Postgres),
            url => {
                address::check_database(
                    "--database (or DATABASE_URL) is neither sqlite nor postgres, and it",
                    url,
                )?;
                Ok(Self::Url(url.to_owned()))
            }
        }
    }
}

impl Servers {
    fn parse(setting: &str, database: &Database) -> Result<Self, UsageError> {
        match setting {
            "" if matches!(database, Database::Url(_)) => Ok(Self::None),
            "" | "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            names => Ok(Self::Listed(
                names
                    .split(',')
                    .map(|name| listed(name.trim()))
                    .collect::<Result<_, _>>()?,
            )),
        }
    }
}

/// A lock server that was asked for by name.
fn listed(name: &str) -> Result<Known, UsageError> {
    let Some(server) = LOCK_SERVERS
        .into_iter()
        .find(|server| server.name() == name)
    else {
        let names = LOCK_SERVERS.map(Known::name).join(", ");
        return Err(UsageError::new(format!(
            "--servers {name:?} is unknown: auto, none, or a list of {names}"
        )));
    };
    if let Some(feature) = server.missing_feature() {
        return Err(UsageError::new(format!(
            "--servers {name}: this program was built without it; build it with --features {feature}"
        )));
    }
    required(&format!("--servers {name}"), server)?;
    Ok(server)
}

fn choose_all(
    servers: &Servers,
    given: &LockServerArgs,
) -> Result<BTreeMap<Known, Source>, UsageError> {
    let mut chosen = BTreeMap::new();
    for server in LOCK_SERVERS {
        if let Some(source) = choose(server, servers, given)? {
            chosen.insert(server, source);
        }
    }
    Ok(chosen)
}

/// A private one that was asked for by name comes first, then one that was given, then what is found.
fn choose(
    server: Known,
    servers: &Servers,
    args: &LockServerArgs,
) -> Result<Option<Source>, UsageError> {
    if matches!(servers, Servers::Listed(names) if names.contains(&server)) {
        return Ok(Some(Source::Private));
    }
    if let Some(given) = args.given(server) {
        args.check(server)?;
        return Ok(Some(Source::Given(given.to_owned())));
    }
    let is_usable = server.missing_feature().is_none() && server.find().is_some();
    Ok((*servers == Servers::Auto && is_usable).then_some(Source::Private))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_database_turns_private_servers_off() {
        let url = Database::parse("postgres://ana@db/shop").unwrap();
        assert_eq!(Servers::parse("", &url).unwrap(), Servers::None);
        assert_eq!(Servers::parse("auto", &url).unwrap(), Servers::Auto);
        assert_eq!(
            Servers::parse("", &Database::Sqlite).unwrap(),
            Servers::Auto
        );
    }

    #[test]
    fn unknown_servers_are_named() {
        for name in ["mongo", "redis,mongo", "mongo,redis", "postgres"] {
            let error = Servers::parse(name, &Database::Sqlite).unwrap_err();
            let unknown = if name == "postgres" { name } else { "mongo" };
            assert!(error.to_string().contains(unknown), "{error}");
        }
    }

    #[test]
    fn several_servers_can_be_listed() {
        let listed = Servers::parse("redlock, redis", &Database::Sqlite).unwrap();
        assert_eq!(listed, Servers::Listed(vec![Known::Redlock, Known::Redis]));
    }

    #[test]
    fn a_given_redis_is_used_unless_a_private_one_is_asked_for() {
        let url = "redis://127.0.0.1:6379";
        let given = LockServerArgs {
            redis_url: Some(url.to_owned()),
            ..LockServerArgs::default()
        };
        let nothing = LockServerArgs::default();
        let redis = |servers: &Servers, given: &LockServerArgs| {
            choose(Known::Redis, servers, given).unwrap()
        };
        let theirs = Some(Source::Given(url.to_owned()));
        assert_eq!(redis(&Servers::None, &given), theirs);
        assert_eq!(redis(&Servers::Auto, &given), theirs);
        let listed = Servers::Listed(vec![Known::Redis]);
        assert_eq!(redis(&listed, &given), Some(Source::Private));
        assert_eq!(redis(&Servers::None, &nothing), None);
    }
}
