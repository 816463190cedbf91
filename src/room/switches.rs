//! The switches of a room: what they are called, what they may be, and what is the default.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::invalid::{InvalidField, given};
use crate::lock::LockName;

/// What `ttl_ms` may be.
pub const TTL_MS: RangeInclusive<u32> = 100..=600_000;
/// What `wait_ms` may be.
pub const WAIT_MS: RangeInclusive<u32> = 0..=60_000;
/// What `think_ms` may be.
pub const THINK_MS: RangeInclusive<u32> = 0..=10_000;

/// The room `main` and those that are made on the page think a little, so that a race has a window to happen in.
const THINK_MS_FOR_PEOPLE: u32 = 100;

/// Whether a late holder's write is refused by its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fencing {
    /// The first read claims the row, and the write asks that nobody has claimed it since.
    FromFirstRead,
    /// Only the write looks at the token, as textbooks draw it.
    OnWrite,
    /// Nobody looks at tokens.
    Off,
}

/// In which order two wallets are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All in one order, at once.
    Sorted,
    /// The giver's first, then, after some thought, the taker's.
    AsGiven,
}

/// Whether a release asks whose lock it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Only the owner's own lock is freed.
    OwnerChecked,
    /// The key is deleted, whoever holds it.
    Blind,
}

/// How a lock that is taken is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Woken by the lock system.
    Notify,
    /// Asking again and again, with growing pauses.
    Backoff,
}

/// All switches of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Switches {
    /// The toggle: whether attempts take locks.
    pub locking: bool,
    /// Which lock system they take them from.
    pub lock: LockName,
    /// Whether tokens are checked at the rows.
    pub fencing: Fencing,
    /// Whether a write asks that each row is still as it was read.
    pub compare: bool,
    /// In which order two wallets are locked.
    pub order: Order,
    /// Whether a release asks whose lock it is.
    pub release: Release,
    /// How a taken lock is waited for.
    pub waiting: Waiting,
    /// How long a lease lasts unrenewed, in milliseconds.
    pub ttl_ms: u32,
    /// Whether leases are renewed while they are held.
    pub renew: bool,
    /// How long an attempt waits for all its locks, in milliseconds; 0 tries once.
    pub wait_ms: u32,
    /// Work between read and write, in milliseconds.
    pub think_ms: u32,
}

impl Switches {
    /// The defaults of a new room, on the given lock system.
    pub fn on(lock: LockName) -> Self {
        Self {
            locking: true,
            lock,
            fencing: Fencing::FromFirstRead,
            compare: false,
            order: Order::Sorted,
            release: Release::OwnerChecked,
            waiting: Waiting::Notify,
            ttl_ms: 2000,
            renew: true,
            wait_ms: 5000,
            think_ms: 0,
        }
    }

    /// The switches that `main` is made with, and a room that somebody makes on the page, to see races in it.
    pub fn for_people(lock: LockName) -> Self {
        Self {
            think_ms: THINK_MS_FOR_PEOPLE,
            ..Self::on(lock)
        }
    }

    /// How long a lease lasts unrenewed.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.into())
    }

    /// How long an attempt waits for all its locks.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms.into())
    }

    /// How long an attempt works between read and write.
    pub fn think(&self) -> Duration {
        Duration::from_millis(self.think_ms.into())
    }

    /// Whether the rows themselves are the locks.
    pub fn locks_rows(&self) -> bool {
        self.locking && self.lock == LockName::Row
    }
}

/// A wish to change some switches.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each field is described at `Switches`")]
pub struct SwitchesPatch {
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub locking: Option<bool>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub lock: Option<LockName>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub fencing: Option<Fencing>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub compare: Option<bool>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub order: Option<Order>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub release: Option<Release>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub waiting: Option<Waiting>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false, minimum = 100, maximum = 600_000)]
    pub ttl_ms: Option<u32>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub renew: Option<bool>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false, maximum = 60_000)]
    pub wait_ms: Option<u32>,
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false, maximum = 10_000)]
    pub think_ms: Option<u32>,
}

impl SwitchesPatch {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), InvalidField> {
        in_range("ttl_ms", self.ttl_ms, TTL_MS)?;
        in_range("wait_ms", self.wait_ms, WAIT_MS)?;
        in_range("think_ms", self.think_ms, THINK_MS)
    }

    /// The switches with the wishes in place.
    pub fn apply(&self, to: &Switches) -> Switches {
        Switches {
            locking: self.locking.unwrap_or(to.locking),
            lock: self.lock.unwrap_or(to.lock),
            fencing: self.fencing.unwrap_or(to.fencing),
            compare: self.compare.unwrap_or(to.compare),
            order: self.order.unwrap_or(to.order),
            release: self.release.unwrap_or(to.release),
            waiting: self.waiting.unwrap_or(to.waiting),
            ttl_ms: self.ttl_ms.unwrap_or(to.ttl_ms),
            renew: self.renew.unwrap_or(to.renew),
            wait_ms: self.wait_ms.unwrap_or(to.wait_ms),
            think_ms: self.think_ms.unwrap_or(to.think_ms),
        }
    }
}

fn in_range(
    field: &str,
    value: Option<u32>,
    range: RangeInclusive<u32>,
) -> Result<(), InvalidField> {
    match value {
        Some(value) if !range.contains(&value) => Err(InvalidField::new(
            field,
            format!("must be {} to {}", range.start(), range.end()),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(json: &str) -> Result<SwitchesPatch, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn switches_are_stored_by_their_public_names() {
        let json = serde_json::to_value(Switches::on(LockName::Redis)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"locking": true, "lock": "redis", "fencing": "from_first_read", "compare": false,
                "order": "sorted", "release": "owner_checked", "waiting": "notify", "ttl_ms": 2000, "renew": true,
                "wait_ms": 5000, "think_ms": 0})
        );
    }

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let before = Switches::on(LockName::Table);
        let after = patch(r#"{"locking": false, "ttl_ms": 100}"#)
            .unwrap()
            .apply(&before);
        assert_eq!(
            after,
            Switches {
                locking: false,
                ttl_ms: 100,
                ..before
            }
        );
    }

    #[test]
    fn what_is_unknown_null_or_out_of_range_is_refused() {
        for json in [
            r#"{"loking": true}"#,
            r#"{"locking": null}"#,
            r#"{"ttl_ms": -1}"#,
            r#"{"ttl_ms": 1.5}"#,
        ] {
            assert!(patch(json).is_err(), "{json}");
        }
        for json in [
            r#"{"ttl_ms": 99}"#,
            r#"{"wait_ms": 60001}"#,
            r#"{"think_ms": 10001}"#,
        ] {
            assert!(patch(json).unwrap().check().is_err(), "{json}");
        }
    }
}
