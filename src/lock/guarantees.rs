//! What each lock system guarantees, as data.
//!
//! The page, the documents and the tests read this one table, so that they cannot disagree. It tells of all eight
//! systems, also of those that are not compiled in, and of `row`, which is no lease at all but a lock on rows
//! inside the business transaction.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The lock systems, by the names that settings use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockName {
    /// A map inside one process.
    Mutex,
    /// One Redis.
    Redis,
    /// A majority of five Redis nodes.
    Redlock,
    /// A conditional update in DynamoDB.
    Dynamodb,
    /// A table of leases in the application's database.
    Table,
    /// `SELECT … FOR UPDATE` on the business rows.
    Row,
    /// Ephemeral nodes in ZooKeeper, ordered by their czxid.
    Zookeeper,
    /// A lease and a key in etcd.
    Etcd,
}

/// What a lock system guarantees, and what it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Guarantees {
    /// Which one.
    pub name: LockName,
    /// Whether the lock of a dead or silent holder becomes free without anybody's help.
    pub expires_by_itself: bool,
    /// Where the fencing token comes from, if there is one that replicas can compare.
    #[schema(required)]
    pub token: Option<&'static str>,
    /// Whether it goes on, with all its locks, when one of its servers is lost for good.
    pub survives_loss_of_one_server: bool,
    /// Whether a holder is told of the loss by the system, before it asks. (Its own timer tells it in any case.)
    pub tells_of_loss: bool,
    /// Whether waiters on different replicas who want one key are served in the order in which they came.
    pub fair: bool,
    /// The shortest lease, in ms, with the server's default settings; shorter ones are raised to it.
    #[schema(required)]
    pub minimum_ttl_ms: Option<u32>,
    /// Whether the setting `ttl_ms` has a meaning.
    pub ttl_applies: bool,
    /// Whether a grant is a lease that ends unless it is renewed, so that the setting `renew` has a meaning.
    pub renew_applies: bool,
    /// Whether the setting `release` = `blind` has a meaning.
    pub blind_release_applies: bool,
    /// What it promises, in one sentence.
    pub promise: &'static str,
    /// What it cannot do, in one sentence.
    pub cannot: &'static str,
}

impl LockName {
    /// All of them, in the order in which people meet them.
    pub const ALL: [Self; 8] = [
        Self::Mutex,
        Self::Redis,
        Self::Redlock,
        Self::Dynamodb,
        Self::Table,
        Self::Row,
        Self::Zookeeper,
        Self::Etcd,
    ];

    /// The name as settings spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Redis => "redis",
            Self::Redlock => "redlock",
            Self::Dynamodb => "dynamodb",
            Self::Table => "table",
            Self::Row => "row",
            Self::Zookeeper => "zookeeper",
            Self::Etcd => "etcd",
        }
    }

    /// The Cargo feature that it needs and this program was built without.
    pub fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Dynamodb if !cfg!(feature = "dynamodb") => Some("dynamodb"),
            Self::Zookeeper if !cfg!(feature = "zookeeper") => Some("zookeeper"),
            Self::Etcd if !cfg!(feature = "etcd") => Some("etcd"),
            _ => None,
        }
    }

    /// What it guarantees.
    pub fn guarantees(self) -> &'static Guarantees {
        match self {
            Self::Mutex => &MUTEX,
            Self::Redis => &REDIS,
            Self::Redlock => &REDLOCK,
            Self::Dynamodb => &DYNAMODB,
            Self::Table => &TABLE,
            Self::Row => &ROW,
            Self::Zookeeper => &ZOOKEEPER,
            Self::Etcd => &ETCD,
        }
    }
}

/// A text that names no lock system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no lock system {0:?}")]
pub struct UnknownLock(String);

impl FromStr for LockName {
    type Err = UnknownLock;

    fn from_str(text: &str) -> Result<Self, UnknownLock> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| UnknownLock(text.to_owned()))
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const MUTEX: Guarantees = Guarantees {
    name: LockName::Mutex,
    expires_by_itself: false,
    token: None,
    survives_loss_of_one_server: false,
    tells_of_loss: false,
    fair: false,
    minimum_ttl_ms: None,
    ttl_applies: false,
    renew_applies: false,
    blind_release_applies: false,
    promise: "Excludes the tasks of one process, without any server.",
    cannot: "It does not exclude another replica at all: each has a mutex of its own.",
};

const REDIS: Guarantees = Guarantees {
    name: LockName::Redis,
    expires_by_itself: true,
    token: Some(
        "a counter in Redis, seeded by the server's time so that it rises after data loss, too",
    ),
    survives_loss_of_one_server: false,
    tells_of_loss: false,
    fair: true,
    minimum_ttl_ms: None,
    ttl_applies: true,
    renew_applies: true,
    blind_release_applies: true,
    promise: "Excludes all replicas that use the same Redis, serving those who want one key and wait to be told in the order in which they came, as long as nobody outlives its lease and Redis keeps its memory.",
    cannot: "It cannot stop a holder that was paused beyond its lease, and a Redis that loses its memory grants a held lock again; only the token catches both.",
};

const REDLOCK: Guarantees = Guarantees {
    name: LockName::Redlock,
    expires_by_itself: true,
    token: Some(
        "the highest number of a majority of nodes, raised and written back to a majority; seeded by their time",
    ),
    survives_loss_of_one_server: true,
    tells_of_loss: false,
    fair: false,
    minimum_ttl_ms: None,
    ttl_applies: true,
    renew_applies: true,
    blind_release_applies: true,
    promise: "Excludes all replicas as long as a majority of the nodes answers and remembers and their clocks run at about the same speed; a node that restarts empty does not vote until nothing depends on what it forgot.",
    cannot: "It cannot stop a holder that was paused beyond its lease, and clocks that jump, or a majority that forgets at once, can grant a held lock again; only the token catches that.",
};

const DYNAMODB: Guarantees = Guarantees {
    name: LockName::Dynamodb,
    expires_by_itself: true,
    token: Some("a counter in the item, which is never deleted"),
    survives_loss_of_one_server: true,
    tells_of_loss: false,
    fair: false,
    minimum_ttl_ms: None,
    ttl_applies: true,
    renew_applies: true,
    blind_release_applies: true,
    promise: "Excludes all replicas through one conditional update of a replicated item.",
    cannot: "It has no clock that decides, so waiters must watch a lease stand still for its whole time before they take it, and it wakes nobody.",
};

const TABLE: Guarantees = Guarantees {
    name: LockName::Table,
    expires_by_itself: true,
    token: Some("a counter in the row, which is never deleted"),
    survives_loss_of_one_server: false,
    tells_of_loss: false,
    fair: false,
    minimum_ttl_ms: None,
    ttl_applies: true,
    renew_applies: true,
    blind_release_applies: true,
    promise: "Excludes all replicas that share the database, by the database's clock, and is there whenever the data is.",
    cannot: "It cannot stop a holder that was paused beyond its lease without the token, serves replicas in no order, writes to the database at every try, and on SQLite wakes nobody.",
};

const ROW: Guarantees = Guarantees {
    name: LockName::Row,
    expires_by_itself: true,
    token: None,
    survives_loss_of_one_server: false,
    tells_of_loss: true,
    fair: false,
    minimum_ttl_ms: None,
    ttl_applies: false,
    renew_applies: false,
    blind_release_applies: false,
    promise: "Excludes everybody else at the rows themselves, and ends with the transaction, so that nothing can be written after it is lost.",
    cannot: "It cannot protect anything outside the database, keeps a connection and a transaction open for as long as it is held, and on SQLite it is one lock for the whole file, in no order between replicas.",
};

const ZOOKEEPER: Guarantees = Guarantees {
    name: LockName::Zookeeper,
    expires_by_itself: true,
    token: Some("the zxid at which the holder's own node was created"),
    survives_loss_of_one_server: true,
    tells_of_loss: false,
    fair: true,
    minimum_ttl_ms: Some(4_000),
    ttl_applies: false,
    renew_applies: true,
    blind_release_applies: false,
    promise: "Excludes all replicas, serving those who want one key in the order in which they came, as long as a majority of the ensemble answers.",
    cannot: "It cannot stop a holder that is paused: its session ends at the server before it learns of it, and then only the token helps.",
};

const ETCD: Guarantees = Guarantees {
    name: LockName::Etcd,
    expires_by_itself: true,
    token: Some("the revision at which the holder's own key was created"),
    survives_loss_of_one_server: true,
    tells_of_loss: false,
    fair: true,
    minimum_ttl_ms: Some(2_000),
    ttl_applies: true,
    renew_applies: true,
    blind_release_applies: false,
    promise: "Excludes all replicas, serving those who want one key in the order in which they came, as long as a majority of the cluster answers.",
    cannot: "It cannot stop a holder that is paused: its lease ends at the server before it learns of it, and then only the token helps.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for name in LockName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert_eq!(
                serde_json::to_value(name).unwrap(),
                serde_json::Value::from(name.as_str())
            );
            assert_eq!(name.guarantees().name, name);
        }
        assert!("Redis".parse::<LockName>().is_err());
    }

    #[test]
    fn promises_and_limits_are_one_sentence_each() {
        for name in LockName::ALL {
            let Guarantees {
                promise, cannot, ..
            } = name.guarantees();
            for sentence in [promise, cannot] {
                assert_eq!(sentence.find(". "), None, "{name}: {sentence}");
                assert!(sentence.ends_with('.'), "{name}: {sentence}");
            }
        }
    }
}
