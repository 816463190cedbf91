//! One thing that happened in an attempt.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Began.
    Began,
    /// Asked for its locks.
    Asked,
    /// Got a lock.
    Granted,
    /// Read a guarded row, or claimed it.
    Read,
    /// Began a pause.
    Paused,
    /// Ended a pause.
    Resumed,
    /// Lost a lease while it was paused or worked.
    Lost,
    /// Worked between read and write.
    Thought,
    /// Wrote, not yet committed.
    Wrote,
    /// Was refused: by the rule, by a condition at a row, by a loss, or by what it could not get.
    Rejected,
    /// Begins anew from the start.
    Anew,
    /// Committed.
    Committed,
    /// Let go of its locks.
    Released,
}

/// One thing that happened in an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds since 1970.
    pub at_ms: f64,
    /// What.
    pub kind: StepKind,
    /// The lock's key or the row, if it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The fencing token, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<i64>,
    /// Of a lease that was granted: until when it surely stands unrenewed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<f64>,
    /// What was seen, written or refused, in words.
    pub detail: String,
}

impl Step {
    /// A step about nothing but itself.
    pub fn new(at_ms: f64, kind: StepKind, detail: impl Into<String>) -> Self {
        Self {
            at_ms,
            kind,
            key: None,
            token: None,
            until_ms: None,
            detail: detail.into(),
        }
    }
}

/// An attempt and its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Which attempt.
    pub attempt: Uuid,
    /// On which replica.
    pub replica: String,
    /// In which room.
    pub room: String,
    /// Who tried: a buyer, or the giver of a transfer.
    pub who: String,
    /// What was tried, in words.
    pub what: String,
    /// How it ended, once it has.
    pub outcome: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}
