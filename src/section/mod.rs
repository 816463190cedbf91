//! The critical section of an attempt: from the room's switches to held locks, and back.
//!
//! The walk is: [`enter`](Section::enter) (all locks), [`read`](Section::read) (a plain read, a claim, or rows taken
//! `FOR UPDATE`), [`think`](Section::think), [`last_look`](Section::last_look), [`begin_write`](Section::begin_write),
//! [`commit`](Section::commit), [`leave`](Section::leave). Booking and transfer both read like this, top to bottom.
//!
//! Promises: locks are released only after the commit's result is known, also when the walk ends with an error; a
//! commit without a result keeps its lease until it runs out. Does not promise that the lease still stands when the
//! write happens: what the write asks for is in its [`Protection`].
//!
//! It knows rows by name and nothing of what is decided about them.

mod attempt;
mod enter;
mod error;
mod failpoint;
mod leases_left;
mod locks;
mod protection;
mod walk;

pub use attempt::{Attempt, End, Intent, Kind, Timing, run};
pub use error::SectionError;
pub use failpoint::{AtGate, Failpoint, Gates, LONGEST_PAUSE_MS, Point};
pub use leases_left::LeasesLeft;
pub use locks::{LockServers, Locks, ZooKeeperServers};
pub use protection::Protection;

use crate::database::fence::RowId;
use crate::database::{Row, Transaction};
use crate::lock::Held;
use crate::room::Room;

/// A section that was entered.
#[derive(Debug)]
pub struct Section<'a> {
    attempt: &'a Attempt,
    room: Room,
    /// The rows of the attempt, in the order in which it named them.
    given: Vec<RowId>,
    holds: Holds,
    /// Each row that was read, with the token of its lock and the version it had.
    read: Vec<(RowId, Option<i64>, i64)>,
    /// The commit was sent, and its result is not known yet.
    committing: bool,
}

/// What keeps others out.
#[derive(Debug)]
enum Holds {
    /// Nothing: locking is off.
    Nothing,
    /// Leases of a lock system: one acquisition, or one for each key when they were taken as given.
    Leases(Vec<Held>),
    /// Rows taken `FOR UPDATE` in a transaction that stays open, and what was read then. Empty once it is written.
    Rows(Option<Box<OpenRows>>),
}

/// Rows taken `FOR UPDATE`.
#[derive(Debug)]
struct OpenRows {
    transaction: Transaction,
    /// What was in them when they were taken; empty once it was read.
    seen: Vec<(RowId, Row)>,
}
