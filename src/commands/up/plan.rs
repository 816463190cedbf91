//! What was asked for: checked, and with its defaults.
//!
//! A plan can be carried out as far as this machine's files and settings tell. Ports are checked apart, since those of
//! a run that was killed become free only after a while.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::UpArgs;
use crate::commands::{UsageError, address};
use crate::stack::found::Known;
use crate::stack::port;

/// How long the ports of a run that was killed may stay in use: longer than its guards need to end everything.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(6);

/// How often such a port is tried.
const PORT_PAUSE: Duration = Duration::from_millis(100);

/// The lock servers that are known and not started yet.
const LATER: [&str; 4] = ["redlock", "etcd", "zookeeper", "dynamodb"];

/// What `up` is to run.
#[derive(Debug)]
pub struct Plan {
    first_port: u16,
    replicas: u16,
    /// Which database.
    pub database: Database,
    /// Which Redis.
    pub redis: Redis,
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

/// The Redis whose locks are used.
#[derive(Debug, PartialEq, Eq)]
pub enum Redis {
    /// One of our own.
    Private,
    /// One that is there already.
    Given(String),
    /// None, and no lock system `redis`.
    None,
}

/// What `--servers` says.
#[derive(Debug, PartialEq, Eq)]
enum Servers {
    Auto,
    None,
    /// Redis, so far the only one that can be listed.
    Redis,
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
        let redis = Redis::choose(&servers, args.redis_url.as_deref().unwrap_or_default())?;

        let mut missing = Vec::new();
        if servers == Servers::Auto {
            missing.extend(missing_line(Known::Redis, "the lock system redis is off"));
            missing.extend(missing_line(Known::Postgres, "--database postgres is off"));
        }
        Ok(Self {
            first_port: args.port,
            replicas: args.replicas,
            database,
            redis,
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

fn missing_line(server: Known, consequence: &str) -> Option<String> {
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
            names => {
                names
                    .split(',')
                    .try_for_each(|name| check_server(name.trim()))?;
                Ok(Self::Redis)
            }
        }
    }
}

fn check_server(name: &str) -> Result<(), UsageError> {
    if name == "redis" {
        return required("--servers redis", Known::Redis);
    }
    if LATER.contains(&name) {
        return Err(UsageError::new(format!(
            "--servers {name}: this version does not use it yet"
        )));
    }
    Err(UsageError::new(format!(
        "--servers {name:?} is unknown: auto, none, or a list of redis"
    )))
}

impl Redis {
    /// A private one that was asked for by name comes first, then one that was given, then what is found.
    fn choose(servers: &Servers, given: &str) -> Result<Self, UsageError> {
        if *servers == Servers::Redis {
            return Ok(Self::Private);
        }
        if !given.is_empty() {
            address::check_redis("--redis-url (or REDIS_URL)", given)?;
            return Ok(Self::Given(given.to_owned()));
        }
        match servers {
            Servers::Auto if Known::Redis.find().is_some() => Ok(Self::Private),
            _ => Ok(Self::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Database, Redis, Servers};

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
        for name in ["mongo", "redis,mongo", "mongo,redis"] {
            let error = Servers::parse(name, &Database::Sqlite).unwrap_err();
            assert!(error.to_string().contains("mongo"), "{error}");
        }
        let later = Servers::parse("etcd", &Database::Sqlite).unwrap_err();
        assert!(later.to_string().contains("not use it yet"), "{later}");
    }

    #[test]
    fn a_given_redis_is_used_unless_a_private_one_is_asked_for() {
        let url = "redis://127.0.0.1:6379";
        assert_eq!(
            Redis::choose(&Servers::None, url).unwrap(),
            Redis::Given(url.to_owned())
        );
        assert_eq!(
            Redis::choose(&Servers::Auto, url).unwrap(),
            Redis::Given(url.to_owned())
        );
        assert_eq!(Redis::choose(&Servers::Redis, url).unwrap(), Redis::Private);
        assert_eq!(Redis::choose(&Servers::None, "").unwrap(), Redis::None);
    }
}
