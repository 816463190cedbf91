//! Why an attempt could not go on, whatever it was about.

use crate::database::DatabaseError;
use crate::database::fence::{Refusal, RowId};
use crate::invalid::InvalidField;

/// Why an attempt could not go on. All but [`SectionError::OutcomeUnknown`] mean that it certainly did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    /// There is no such room, seat or wallet.
    #[error("there is no {0}")]
    NotFound(String),
    /// There is no such seat or wallet in the room.
    #[error("there is no {} {} in this room", .0.table.name(), .0.name)]
    NoSuchRow(RowId),
    /// The request itself cannot be taken.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// A failpoint was asked for where failpoints are off.
    #[error("this replica was started without failpoints")]
    FailpointsOff,
    /// `wait_ms` passed before all locks were granted.
    #[error("waited {waited_ms} ms for {key} and did not get it")]
    LockTimeout {
        /// What was waited for.
        key: String,
        /// How long, in milliseconds.
        waited_ms: u128,
    },
    /// The database ended the transaction to break a deadlock.
    #[error("{0}")]
    Deadlock(String),
    /// The room's lock system is not there, does not answer, or is not the one that the other replicas use.
    #[error("{0}")]
    LockUnavailable(String),
    /// The database is not there.
    #[error("{0}")]
    DatabaseUnavailable(String),
    /// The database did not answer within the limit.
    #[error("{0}")]
    DatabaseBusy(String),
    /// The row carries the stamp of a later holder.
    #[error("{row} carries token {found}, mine is {mine}: somebody was granted the lock after me")]
    StaleToken {
        /// The row.
        row: String,
        /// The token in the row.
        found: i64,
        /// The token of this attempt.
        mine: i64,
    },
    /// The row is not as it was read.
    #[error("{0} was written by somebody else after it was read")]
    RowChanged(String),
    /// The room's switches changed, or it was reset, while the attempt was under way.
    #[error(
        "while the attempt was under way the room's switches changed, it was reset, or its lock server was replaced"
    )]
    SwitchesChanged,
    /// The lease ended before the last look.
    #[error("the lease ended before the write")]
    LeaseLost,
    /// The commit was sent and its result is not known.
    #[error("the commit was sent, and its result is not known: {0}")]
    OutcomeUnknown(String),
    /// The replica is stopping.
    #[error("this replica is stopping")]
    ShuttingDown,
    /// So many attempts are under way here that one more would help nobody.
    #[error(
        "{0} attempts are under way on this replica, or ask its lock system, and no more are taken"
    )]
    TooManyAttempts(usize),
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
    /// Not for the outside: the walk is to begin again from the start.
    #[error("the attempt begins anew: {0}")]
    BeginAnew(Box<SectionError>),
}

impl From<DatabaseError> for SectionError {
    fn from(error: DatabaseError) -> Self {
        let text = error.to_string();
        match error {
            DatabaseError::Unavailable(_) => Self::DatabaseUnavailable(text),
            DatabaseError::Busy(_) => Self::DatabaseBusy(text),
            DatabaseError::Deadlock(_) => Self::Deadlock(text),
            DatabaseError::Broken(_) => Self::Internal(text),
        }
    }
}

impl SectionError {
    /// What a refused write means for the attempt whose token was `mine`.
    pub(super) fn refused(row: &RowId, refusal: Refusal, mine: Option<i64>) -> Self {
        match refusal {
            Refusal::Gone => Self::NoSuchRow(row.clone()),
            Refusal::LaterEpoch => Self::SwitchesChanged,
            Refusal::StaleToken { found } => Self::StaleToken {
                row: row.to_string(),
                found,
                mine: mine.unwrap_or(0),
            },
            Refusal::RowChanged => Self::RowChanged(row.to_string()),
        }
    }

    /// The walk is to begin again; if it cannot, this is what the attempt ends with.
    pub(super) fn anew(self) -> Self {
        Self::BeginAnew(Box::new(self))
    }
}
