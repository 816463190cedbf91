//! Why a lock was not acquired, or is no longer held.
//!
//! The kinds are kept apart because they ask for different reactions: a taken lock is tried again, a lock system
//! that is down is repaired, a lost lease ends the work. None of them ever means "acquired".

use std::time::Duration;

use super::{claim::Claim, key::BadKey, many::NoKeys};

/// Why an acquisition failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Others held a key, or stood in front, until the wait limit was over.
    #[error("the lock was not free within {} ms", waited.as_millis())]
    Timeout {
        /// How long was waited.
        waited: Duration,
    },
    /// The lock system did not answer, or answered that it cannot work. What was asked for may have happened.
    #[error("the lock system is unavailable: {reason}")]
    Unavailable {
        /// What it said, without passwords.
        reason: String,
    },
    /// The lease was lost.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Nobody waits for the result any more, or the runtime is ending.
    #[error("the acquisition was cancelled")]
    Cancelled,
    /// So many wait in this process already that another one would only pile up.
    #[error("more than {limit} acquisitions wait in this process")]
    TooManyWaiters {
        /// The limit.
        limit: usize,
    },
    /// The wish cannot be granted by any lock system.
    #[error("bad lock setting: {reason}")]
    BadSetting {
        /// Which setting, and why.
        reason: String,
    },
}

/// The lease ran out, or the lock system said that it belongs to somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost")]
pub struct Lost;

impl LockError {
    pub(crate) fn unavailable(reason: impl ToString) -> Self {
        Self::Unavailable {
            reason: reason.to_string(),
        }
    }

    pub(crate) fn no_answer(claim: &Claim) -> Self {
        Self::unavailable(format!(
            "no answer within {} ms",
            claim.patience.as_millis()
        ))
    }

    pub(crate) fn bad_setting(reason: impl ToString) -> Self {
        Self::BadSetting {
            reason: reason.to_string(),
        }
    }
}

impl From<BadKey> for LockError {
    fn from(bad: BadKey) -> Self {
        Self::bad_setting(bad)
    }
}

impl From<NoKeys> for LockError {
    fn from(none: NoKeys) -> Self {
        Self::bad_setting(none)
    }
}
