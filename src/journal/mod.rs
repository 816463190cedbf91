//! What each attempt did, step by step, as its own replica saw it.
//!
//! Promises: telling a step never waits and never fails; the steps of the last [`MOST_ATTEMPTS`] attempts are kept,
//! in memory only; who listens to a room hears them as they happen, and costs nothing while nobody does. Does not
//! promise one clock: a step's time is this replica's wall clock at its start plus what a monotonic clock counted since.

mod feed;
mod step;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use feed::Feeds;
pub use feed::{Listener, RaceState, Told, ToldEnd, ToldRace, ToldStep};
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
    feeds: Arc<Feeds>,
}

/// The attempts that are remembered, oldest first.
#[derive(Debug, Default)]
struct Kept {
    order: VecDeque<Uuid>,
    attempts: HashMap<Uuid, Remembered>,
}

/// An attempt that is remembered.
#[derive(Debug)]
struct Remembered {
    record: Record,
    /// Whether it is told to those who listen.
    told: bool,
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
            feeds: Arc::default(),
        }
    }
}

impl Journal {
    /// Now, in milliseconds since 1970, never going backwards.
    pub fn now_ms(&self) -> f64 {
        self.started_at_ms + self.started.elapsed().as_secs_f64() * 1000.0
    }

    /// A moment of the monotonic clock, in milliseconds since 1970.
    pub fn at_ms(&self, moment: Instant) -> f64 {
        let since = moment.saturating_duration_since(self.started);
        self.started_at_ms + since.as_secs_f64() * 1000.0
    }

    /// Begins the record of an attempt; the oldest is forgotten for it.
    pub fn begin(&self, mut record: Record) {
        let began = Step::new(self.now_ms(), StepKind::Began, "begins");
        record.steps.push(began);
        let told = self.feeds.admits(&record.room);
        let mut kept = self.kept();
        if told {
            self.tell_last_step(&record);
        }
        let attempt = record.attempt;
        let remembered = Remembered { record, told };
        if kept.attempts.insert(attempt, remembered).is_none() {
            kept.order.push_back(attempt);
        }
        while kept.order.len() > MOST_ATTEMPTS {
            let oldest = kept.order.pop_front();
            oldest.and_then(|oldest| kept.attempts.remove(&oldest));
        }
    }

    /// Adds a step to an attempt that is still remembered.
    pub fn tell(&self, attempt: Uuid, step: Step) {
        let mut kept = self.kept();
        if let Some(Remembered { record, told }) = kept.attempts.get_mut(&attempt)
            && record.steps.len() < MOST_STEPS
        {
            record.steps.push(step);
            if *told {
                self.tell_last_step(record);
            }
        }
    }

    fn tell_last_step(&self, record: &Record) {
        let Some(step) = record.steps.last() else {
            return;
        };
        let told = || Told::Step(ToldStep::of(record, step));
        self.feeds.tell(&record.room, told);
    }

    /// Tells why an attempt did not happen, unless one of its steps since it last began has told already.
    pub fn tell_why(&self, attempt: Uuid, why: &str) {
        let told = self.record(attempt).is_some_and(|record| {
            let last_first = record.steps.iter().rev();
            let mut since_it_began = last_first.take_while(|step| step.kind != StepKind::Anew);
            since_it_began.any(|step| step.kind == StepKind::Rejected)
        });
        if !told {
            let step = Step::new(self.now_ms(), StepKind::Rejected, why);
            self.tell(attempt, step);
        }
    }

    /// Notes how an attempt ended: `booked`, `transferred` or the last word of a problem's type.
    pub fn end(&self, attempt: Uuid, outcome: &str) {
        let at_ms = self.now_ms();
        let mut kept = self.kept();
        let Some(Remembered { record, told }) = kept.attempts.get_mut(&attempt) else {
            return;
        };
        record.outcome = Some(outcome.to_owned());
        if *told {
            self.feeds.tell(&record.room, || {
                Told::Ended(ToldEnd {
                    at_ms,
                    replica: record.replica.clone(),
                    attempt,
                    outcome: outcome.to_owned(),
                })
            });
        }
    }

    /// Tells that a room was changed by something that is no attempt.
    pub fn room_changed(&self, room: &str) {
        self.feeds.tell(room, || Told::Changed);
    }

    /// Tells that a race begins, and that it is over once the value is dropped.
    pub fn race_begins<'a>(&'a self, room: &'a str, race: &'static str) -> ToldUntilDropped<'a> {
        let told = ToldUntilDropped {
            journal: self,
            room,
            race,
        };
        told.tell(RaceState::Began);
        told
    }

    /// Hears from now on what happens in a room on this replica.
    pub fn listen(&self, room: &str) -> Listener {
        self.feeds.listen(room)
    }

    /// What is remembered of an attempt.
    pub fn record(&self, attempt: Uuid) -> Option<Record> {
        let kept = self.kept();
        let remembered = kept.attempts.get(&attempt);
        remembered.map(|remembered| remembered.record.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A race under way. Its end is told however it ends.
#[derive(Debug)]
pub struct ToldUntilDropped<'a> {
    journal: &'a Journal,
    room: &'a str,
    race: &'static str,
}

impl ToldUntilDropped<'_> {
    fn tell(&self, state: RaceState) {
        self.journal.feeds.tell(self.room, || {
            Told::Race(ToldRace {
                at_ms: self.journal.now_ms(),
                race: self.race.to_owned(),
                state,
            })
        });
    }
}

impl Drop for ToldUntilDropped<'_> {
    fn drop(&mut self) {
        self.tell(RaceState::Ended);
    }
}
