//! What each attempt did, step by step, as its own replica saw it.
//!
//! Promises: telling a step never waits and never fails; the steps of the last [`MOST_ATTEMPTS`] attempts are kept,
//! in memory only. Does not promise one clock: a step's time is this replica's wall clock at its start plus what a
//! monotonic clock counted since.

mod step;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use step::{Record, Step, StepKind};
use uuid::Uuid;

/// How many attempts a replica remembers.
pub const MOST_ATTEMPTS: usize = 1000;

/// The steps of one attempt that are kept; a retry loop cannot fill the memory.
const MOST_STEPS: usize = 200;

/// The journal of this replica.
#[derive(Debug)]
pub struct Journal {
    started: Instant,
    /// Wall clock at `started`, in milliseconds since 1970.
    started_at_ms: f64,
    kept: Mutex<Kept>,
}

/// The attempts that are remembered, oldest first.
#[derive(Debug, Default)]
struct Kept {
    order: VecDeque<Uuid>,
    records: HashMap<Uuid, Record>,
}

impl Default for Journal {
    fn default() -> Self {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            started_at_ms: since_1970.as_secs_f64() * 1000.0,
            kept: Mutex::default(),
        }
    }
}

impl Journal {
    /// Now, in milliseconds since 1970, never going backwards.
    pub fn now_ms(&self) -> f64 {
        self.started_at_ms + self.started.elapsed().as_secs_f64() * 1000.0
    }

    /// Begins the record of an attempt; the oldest is forgotten for it.
    pub fn begin(&self, record: Record) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept
            .records
            .insert(record.attempt, record.clone())
            .is_none()
        {
            kept.order.push_back(record.attempt);
        }
        while kept.order.len() > MOST_ATTEMPTS {
            let oldest = kept.order.pop_front();
            oldest.and_then(|oldest| kept.records.remove(&oldest));
        }
    }

    /// Adds a step to an attempt that is still remembered.
    pub fn tell(&self, attempt: Uuid, step: Step) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = kept.records.get_mut(&attempt)
            && record.steps.len() < MOST_STEPS
        {
            record.steps.push(step);
        }
    }

    /// Tells why an attempt did not happen, unless one of its steps since it last began has told already.
    pub fn tell_why(&self, attempt: Uuid, why: &str) {
        let told = self.record(attempt).is_some_and(|record| {
            let last_first = record.steps.iter().rev();
            let mut since_it_began = last_first.take_while(|step| step.kind != StepKind::Anew);
            since_it_began.any(|step| step.kind == StepKind::Rejected)
        });
        if !told {
            let step = Step {
                at_ms: self.now_ms(),
                kind: StepKind::Rejected,
                key: None,
                token: None,
                detail: why.to_owned(),
            };
            self.tell(attempt, step);
        }
    }

    /// Notes how an attempt ended: `booked`, `transferred` or the last word of a problem's type.
    pub fn end(&self, attempt: Uuid, outcome: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = kept.records.get_mut(&attempt) {
            record.outcome = Some(outcome.to_owned());
        }
    }

    /// What is remembered of an attempt.
    pub fn record(&self, attempt: Uuid) -> Option<Record> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.records.get(&attempt).cloned()
    }
}
