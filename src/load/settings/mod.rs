//! What was asked for, in types that cannot be wrong.
//!
//! Each part parses itself from the text that people type and says in one line what it should have been.

mod side;
mod target;
mod threshold;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use side::Side;
pub use target::Target;
pub use threshold::{Comparison, Metric, Threshold, Unit};

use super::schedule::Workload;

/// How many sides can be given. `--all-locks` brings as many as there are.
pub const MOST_SIDES: usize = 8;

/// A whole run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The replicas, asked in turn.
    pub targets: Vec<Target>,
    /// What is compared.
    pub sides: Sides,
    /// What is wanted of them.
    pub workload: Workload,
    /// When the next request is sent.
    pub pace: Pace,
    /// What is driven before anything is measured.
    pub warm_up: Duration,
    /// What is measured, for each side.
    pub duration: Duration,
    /// Where the schedule comes from; each repetition has the next one.
    pub seed: u64,
    /// Sides take turns of this length, instead of running at the same time.
    pub interleave: Option<Duration>,
    /// How often all of it is done.
    pub repeat: u32,
    /// The work between read and write, for rooms whose side does not say otherwise.
    pub think: Option<Duration>,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How many requests of a side may be under way at once.
    pub in_flight: usize,
    /// What must hold at the end.
    pub thresholds: Vec<Threshold>,
    /// Where the report for people goes.
    pub report: Option<PathBuf>,
    /// Where the report for machines goes.
    pub json: Option<PathBuf>,
    /// Where the history goes.
    pub history: Option<PathBuf>,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sides {
    /// These.
    Given(Vec<Side>),
    /// Locking off, and every lock system that the targets have.
    AllLocks,
}

/// When the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// When its time has come, whatever became of the others: so many a second on average.
    Open {
        /// Requests a second.
        rate: f64,
    },
    /// When the client before it has its answer: so many clients.
    Closed {
        /// How many.
        clients: usize,
    },
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { rate } => write!(f, "open model, {rate} requests a second"),
            Self::Closed { clients } => write!(f, "closed model, {clients} clients"),
        }
    }
}

impl Settings {
    /// Everything that is driven for one side in one repetition.
    pub fn driven(&self) -> Duration {
        self.warm_up + self.duration
    }

    /// The targets that a side asks: its own, or those of the run.
    pub fn targets_of<'a>(&'a self, side: &'a Side) -> &'a [Target] {
        if side.targets.is_empty() {
            &self.targets
        } else {
            &side.targets
        }
    }

    /// All targets that some side asks, each of them once.
    pub fn asked(&self) -> Vec<Target> {
        let mut asked = Vec::new();
        let all: Vec<&[Target]> = match &self.sides {
            Sides::Given(sides) => sides.iter().map(|side| self.targets_of(side)).collect(),
            Sides::AllLocks => vec![&self.targets],
        };
        for target in all.into_iter().flatten() {
            if !asked.contains(target) {
                asked.push(target.clone());
            }
        }
        asked
    }

    /// How long a turn is: all of it where sides run at the same time.
    pub fn turn(&self) -> Duration {
        self.interleave.unwrap_or(self.driven())
    }
}

/// `20ms`, `1.5s`, `2m`: a length of time.
///
/// # Errors
/// What it should have been.
pub fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a length of time such as 500ms, 20s or 2m".to_owned();
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" | "min" => number * 60.0,
        _ => return Err(wrong()),
    };
    if !(0.0..=3600.0).contains(&seconds) {
        return Err("must be from 0s to 60m".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn lengths_have_a_unit() {
        assert_eq!(length("20ms").unwrap().as_millis(), 20);
        assert_eq!(length("1.5s").unwrap().as_millis(), 1500);
        assert_eq!(length("2m").unwrap().as_secs(), 120);
        for wrong in ["20", "", "s", "-1s", "1h", "61m", "NaNs", "infs", "1s2"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }
}
