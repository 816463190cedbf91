//! Races: real HTTP requests to the replicas, sent so that they meet.
//!
//! A race resets its room first. It promises that its attempts are ordinary ones, under the room's own switches; it
//! does not promise that a race without protection goes wrong each time, since that is what a race is.

mod contenders;
mod needs;
mod run;
mod running;
mod store;
mod track;

pub use run::{RaceError, run};
pub use running::Running;
pub use store::last;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::audit::Audit;
use crate::journal::Record;

/// The races there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Race {
    /// Two buyers ask for one seat at once.
    OneSeat,
    /// Two transfers of 80 leave a wallet of 100 at once.
    LostUpdate,
    /// Two transfers cross each other.
    Crossing,
    /// Fifty buyers ask for ten seats.
    Crowd,
    /// A holder is paused beyond its lease and writes when it wakes up.
    PausedHolder,
}

impl Race {
    /// All of them, in the order in which people meet them.
    pub const ALL: [Self; 5] = [
        Self::OneSeat,
        Self::LostUpdate,
        Self::Crossing,
        Self::Crowd,
        Self::PausedHolder,
    ];

    /// Its name in addresses and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OneSeat => "one-seat",
            Self::LostUpdate => "lost-update",
            Self::Crossing => "crossing",
            Self::Crowd => "crowd",
            Self::PausedHolder => "paused-holder",
        }
    }
}

/// What came of a race.
#[derive(Debug, Serialize, ToSchema)]
pub struct RaceResult {
    /// Which race.
    pub race: Race,
    /// What each attempt got, in the order in which they were sent.
    pub attempts: Vec<RacedAttempt>,
    /// What the database says after.
    pub audit: Audit,
}

/// What one attempt of a race got.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RacedAttempt {
    /// Which attempt.
    pub attempt: Uuid,
    /// Which replica it was sent to.
    pub replica: String,
    /// The buyer, or the giver of a transfer.
    pub buyer: String,
    /// The status of the answer; 0 when there was none.
    pub status: u16,
    /// `booked`, `transferred` or the last word of the problem's type.
    pub outcome: String,
    /// The fencing token, if there was one; of a transfer, the giver's.
    #[schema(required)]
    pub token: Option<i64>,
    /// From sending to the answer, in milliseconds.
    pub ms: f64,
}

/// The last race of a room, as it is kept for the page.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LastRace {
    /// Which race.
    pub race: Race,
    /// What each attempt got.
    pub attempts: Vec<RacedAttempt>,
    /// The replicas that did not answer when it began, so that nothing was sent to them.
    #[serde(default)]
    pub absent: Vec<String>,
    /// The audit's sentence after it.
    pub sentence: String,
    /// Whether the audit was clean after it.
    pub clean: bool,
    /// The steps of its attempts, as far as their replicas still told them.
    pub records: Vec<Record>,
}
