//! What a lock system must do. Everything else is a layer above it.
//!
//! The trait promises little on purpose, so that one Redis, a majority of nodes, a conditional update, a session
//! with ephemeral nodes and a lease with keep-alive all fit it:
//!
//! - every request may have been applied although it failed, so `ask` may be repeated by the same owner and
//!   `release` may be sent for a claim that was never granted;
//! - a system may keep state per owner (a node, a lease id) between the requests; `release` ends it;
//! - a system reports, it does not wait: whoever is refused comes back, earlier when [`Wakeups`] says so.
//!
//! It does not promise that a grant is still valid when its holder acts on it.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    claim::{Claim, Grant},
    error::LockError,
    guarantees::LockName,
    key::Key,
    wakeups::Wakeups,
};

/// Grants locks. Shared by all tasks of a process.
#[async_trait]
pub trait LockSystem: Send + Sync + 'static {
    /// Which one this is.
    fn name(&self) -> LockName;

    /// Tries once to get all keys, all or nothing. The same owner may ask again: what it already has it keeps,
    /// with the same tokens, for a new `ttl`. The layers never cancel this future, only the runtime's end does.
    ///
    /// # Errors
    /// [`LockError::Unavailable`]: the answer is not known, so the keys may have been granted.
    /// [`LockError::TooManyWaiters`]: so many asks are under way that this one was not sent.
    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError>;

    /// Makes a grant last for another `ttl` from now; or, where nothing expires, says whether it still stands.
    /// Never grants: a lease that ran out stays lost, also when nobody took the keys since. May be cancelled.
    ///
    /// # Errors
    /// [`LockError::Unavailable`]: not known. The lease is neither kept nor lost.
    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError>;

    /// Gives back whatever the owner has: a grant, a place in a queue, or nothing. May be cancelled.
    ///
    /// # Errors
    /// [`LockError::Unavailable`]: not known. With [`ReleaseMode::OwnerChecked`] it may be sent again.
    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError>;

    /// Where the releases of others are heard, if they can be.
    fn wakeups(&self) -> Option<&Wakeups> {
        None
    }

    /// Whether a refused `ask` leaves its owner waiting at the system. Then giving up is told with `release`, and so is
    /// the end of a lease that was not renewed, since a session may keep it that the whole process shares.
    fn queues(&self) -> bool {
        false
    }

    /// How long a grant lasts unrenewed when `wanted` is asked for: a system with a minimum raises it.
    /// `None` when a grant never ends by itself.
    fn lease_time(&self, wanted: Duration) -> Option<Duration> {
        Some(wanted)
    }

    /// The random id that the lock server holds, so that replicas can notice that they talk to two different ones.
    /// Stores `draw` when it holds none. `None` where there is no server of its own.
    ///
    /// # Errors
    /// [`LockError::Unavailable`].
    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let _ = draw;
        Ok(None)
    }

    /// How many connections were made so far. When it has grown since [`server`](Self::server) was compared, the
    /// server may be another one.
    fn connections(&self) -> u64 {
        0
    }
}

/// The answer to `ask`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All keys are the owner's.
    Granted(Grant),
    /// At least one key is another's; nothing was taken.
    Refused {
        /// The first key that refused.
        key: Key,
        /// When the other's lease runs out unless it is renewed, if known.
        retry_in: Option<Duration>,
    },
}

/// The answer to `renew`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// All keys are still the owner's, for another `ttl` from when this was asked.
    Kept,
    /// All keys are still the owner's, under a lease that many claims share and that counts from then.
    KeptSince(Instant),
    /// At least one key is not.
    Lost,
}

/// How carefully a lock is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReleaseMode {
    /// Only if it is still the owner's.
    #[default]
    OwnerChecked,
    /// Whoever's it is. This is wrong, often seen, and here to be shown.
    Blind,
}

/// The answer to `release`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// All keys were freed.
    Released,
    /// At least one key was not the owner's (any more); the others were freed.
    NotTheOwner,
}

/// Which lock server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerId {
    /// The id that it holds.
    pub id: String,
    /// Where it was reached, for people; without a password.
    pub address: String,
    /// Where on it the id is kept, for whoever must take it away, such as "the key a:b".
    pub kept_in: String,
}
