//! The load generator: how fast replicas answer, and whether the answers were right.
//!
//! Promises: every side meets the same seeded schedule; latency is counted from when a request *should* have been sent;
//! every answer is part of a history that is held against the final state of the room; what could not be told is said
//! to be unknown. Does not promise safety: it can only say what was seen.
//!
//! It speaks HTTP only, as a stranger would, and imports nothing of the modules that sell seats and move money.

// The use case: make rooms, drive the sides, check, remove the rooms, report.
mod run;

// What was asked for, in types that cannot be wrong.
pub mod settings;

// Who comes when and wants what: the same for the same seed.
pub mod schedule;

// HTTP, and the kinds of its failures.
pub mod client;

// A room of each side: made, read, removed.
mod room;

// Sends what the schedule says, when it says it.
pub mod drive;

// What was asked and answered, one event after the other.
pub mod history;

// A history and a final state, held against each other.
pub mod check;

// How long answers took, and what they were.
pub mod measure;

// Whether a difference is one.
pub mod statistics;

// What the generator itself used up.
pub mod generator;

// How a run stands at the moment.
pub mod watch;

// What is shown in a terminal while it runs.
mod live;

// The runs that are started at a page.
pub mod desk;

// What is shown at the end: table, JSON, HTML.
pub mod report;

pub use live::Live;
pub use run::{Ran, RunError, run};
pub use settings::Settings;
