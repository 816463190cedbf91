//! How a run stands at the moment, for whoever looks: the terminal, or a page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::drive::Lane;
use super::measure::percentile;

/// Looks at a run from outside. It knows nothing before the rooms of the first repetition are made.
#[derive(Debug, Default)]
pub struct Watch {
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    repetition: u32,
    sides: Vec<(String, Arc<Lane>)>,
}

/// A run at a moment.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Each side.
    pub sides: Vec<SideNow>,
}

/// A side at a moment, since its repetition began.
#[derive(Debug, Clone)]
pub struct SideNow {
    /// Its label.
    pub label: String,
    /// Its own time, which stands still while others have their turn; the warming up is part of it.
    pub elapsed: Duration,
    /// Attempts that were done in the measured time.
    pub done: u64,
    /// Attempts that were refused.
    pub refused: u64,
    /// Attempts without a clear answer.
    pub failed: u64,
    /// The median response time in milliseconds.
    pub p50: Option<f64>,
    /// Its 99th percentile.
    pub p99: Option<f64>,
    /// Seats that were acknowledged twice: what can be seen at once.
    pub twice: u64,
}

impl Watch {
    /// A repetition begins.
    pub(super) fn begins(&self, repetition: u32, sides: Vec<(String, Arc<Lane>)>) {
        *self.under_way() = UnderWay { repetition, sides };
    }

    /// How it stands; none before anything was begun.
    pub fn now(&self) -> Option<Moment> {
        let under_way = self.under_way();
        let sides = under_way
            .sides
            .iter()
            .map(|(label, lane)| SideNow::of(label, lane));
        (under_way.repetition > 0).then(|| Moment {
            repetition: under_way.repetition,
            sides: sides.collect(),
        })
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl SideNow {
    fn of(label: &str, lane: &Lane) -> Self {
        let recorded = lane.recorded();
        let measures = &recorded.measures;
        Self {
            label: label.to_owned(),
            elapsed: recorded.latest(),
            done: measures.done,
            refused: measures.refused(),
            failed: measures.failed(),
            p50: percentile(&measures.response, 50.0),
            p99: percentile(&measures.response, 99.0),
            twice: recorded.twice,
        }
    }
}
