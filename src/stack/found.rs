//! Which servers this machine has, and which package brings the others.
//!
//! It only looks at files. Whether a server that is there also works is learned by starting it.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::lock::LockName;

/// Where Debian puts PostgreSQL's programs: a folder per major version, none of them on PATH.
const DEBIAN_POSTGRES: &str = "/usr/lib/postgresql";

/// Where Debian's `zookeeper` puts its program, a Java archive.
const DEBIAN_ZOOKEEPER: &str = "/usr/share/java/zookeeper.jar";

/// Names the folder of DynamoDB Local, if it is none of those that are looked at.
const DYNAMODB_LOCAL: &str = "DOUBLEBOOK_DYNAMODB_LOCAL";

/// Where `scripts/test` unpacks DynamoDB Local, in the folder of what can be fetched again (XDG Base Directory).
const CACHED_DYNAMODB: &str = "doublebook/dynamodb-local";

/// Where `npm install --global` may put DynamoDB Local.
const NPM_FOLDERS: [&str; 2] = ["/usr/local/lib/node_modules", "/usr/lib/node_modules"];

/// DynamoDB Local in its npm package.
const NPM_DYNAMODB: &str = "amplify-dynamodb-simulator/emulator";

/// A server this program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// PostgreSQL.
    Postgres,
    /// Redis, or Valkey in its place.
    Redis,
    /// Five of the same.
    Redlock,
    /// etcd.
    Etcd,
    /// ZooKeeper, which needs Java.
    ZooKeeper,
    /// DynamoDB Local, which needs Java.
    DynamoDb,
}

/// All of them, in the order in which they are told.
pub const ALL: [Known; 6] = [
    Known::Postgres,
    Known::Redis,
    Known::Redlock,
    Known::Etcd,
    Known::ZooKeeper,
    Known::DynamoDb,
];

/// Those that grant locks, by the names of the lock systems.
pub const LOCK_SERVERS: [Known; 5] = [
    Known::Redis,
    Known::Redlock,
    Known::Etcd,
    Known::ZooKeeper,
    Known::DynamoDb,
];

/// A server that was asked for and is not there.
#[derive(Debug, thiserror::Error)]
#[error("{program} is not installed; {package} brings it")]
pub struct Missing {
    program: &'static str,
    package: &'static str,
}

impl Known {
    /// Its name in `--servers` and `--database`.
    pub fn name(self) -> &'static str {
        self.lock().map_or("postgres", LockName::as_str)
    }

    /// Its program, for messages.
    pub fn program(self) -> &'static str {
        match self {
            Self::Redis | Self::Redlock => "redis-server",
            Self::Postgres => "postgres",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "ZooKeeper",
            Self::DynamoDb => "DynamoDB Local",
        }
    }

    /// What brings it.
    pub fn package(self) -> &'static str {
        match self {
            Self::Redis | Self::Redlock => "the package redis-server",
            Self::Postgres => "the package postgresql",
            Self::Etcd => "the package etcd-server",
            Self::ZooKeeper => "the package zookeeper (with the package default-jre-headless)",
            Self::DynamoDb => {
                "the npm package amplify-dynamodb-simulator (with the package default-jre-headless)"
            }
        }
    }

    /// The lock system that it serves, if it is no database.
    pub fn lock(self) -> Option<LockName> {
        match self {
            Self::Postgres => None,
            Self::Redis => Some(LockName::Redis),
            Self::Redlock => Some(LockName::Redlock),
            Self::Etcd => Some(LockName::Etcd),
            Self::ZooKeeper => Some(LockName::Zookeeper),
            Self::DynamoDb => Some(LockName::Dynamodb),
        }
    }

    /// The Cargo feature that this program was built without and needs to speak to it.
    pub fn missing_feature(self) -> Option<&'static str> {
        self.lock().and_then(LockName::missing_feature)
    }

    /// Where its program is, if it is there.
    pub fn find(self) -> Option<PathBuf> {
        match self {
            Self::Redis | Self::Redlock => {
                on_path("redis-server").or_else(|| on_path("valkey-server"))
            }
            Self::Postgres => postgres_programs().map(|folder| folder.join("postgres")),
            Self::Etcd => on_path("etcd"),
            Self::ZooKeeper => on_path("java").and_then(|_| file(DEBIAN_ZOOKEEPER.into())),
            Self::DynamoDb => on_path("java").and_then(|_| dynamodb_local()),
        }
    }

    /// Where its program is, or an error that names the package.
    pub fn required(self) -> Result<PathBuf, Missing> {
        self.find().ok_or(Missing {
            program: self.program(),
            package: self.package(),
        })
    }
}

/// A program of this name on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let programs = std::env::split_paths(&path).map(|folder| folder.join(program));
    programs.filter_map(file).find(|program| {
        // One that we may not run hides none that we may.
        access(program, AccessFlags::X_OK).is_ok()
    })
}

/// The folder that has `postgres` beside `initdb`: the one on PATH, else Debian's newest.
fn postgres_programs() -> Option<PathBuf> {
    let on_path = on_path("postgres").and_then(|postgres| postgres.canonicalize().ok());
    let on_path = on_path.and_then(|postgres| postgres.parent().map(Path::to_owned));
    on_path
        .filter(|folder| has_postgres(folder))
        .or_else(newest_debian_postgres)
}

fn newest_debian_postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN_POSTGRES).ok()?.flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let programs = |version: u32| {
        Path::new(DEBIAN_POSTGRES)
            .join(version.to_string())
            .join("bin")
    };
    versions
        .filter(|version| has_postgres(&programs(*version)))
        .max()
        .map(programs)
}

fn has_postgres(folder: &Path) -> bool {
    folder.join("postgres").is_file() && folder.join("initdb").is_file()
}

fn dynamodb_local() -> Option<PathBuf> {
    let named = std::env::var_os(DYNAMODB_LOCAL).map(PathBuf::from);
    let cached = cache_folder().map(|folder| folder.join(CACHED_DYNAMODB));
    let by_npm = NPM_FOLDERS.map(|folder| Path::new(folder).join(NPM_DYNAMODB));
    let folders = named.into_iter().chain(cached).chain(by_npm);
    folders
        .map(|folder| folder.join("DynamoDBLocal.jar"))
        .find_map(file)
        // It runs in another folder than the one from which this is seen.
        .and_then(|jar| std::path::absolute(jar).ok())
}

fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let home = || Some(PathBuf::from(set("HOME")?).join(".cache"));
    set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)
}

fn file(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}
