//! What each attempt did, step by step, as its own replica saw it.
//!
//! Promises: telling a step never waits and never fails; the steps of attempts that are under way are kept, and of the
//! last [`MOST_ATTEMPTS`] that have ended, in memory only; who listens to a room hears them as they happen, and costs
//! nothing while nobody does. Does not promise one clock: a step's time is this replica's wall clock at its start plus
//! what a monotonic clock counted since.

mod feed;
mod step;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use feed::Feeds;
pub use feed::{Listener, RaceState, Told, ToldEnd, ToldRace, ToldStep};
pub use step::{Record, Step, StepKind};
use uuid::Uuid;

/// How many attempts that have ended a replica remembers.
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

/// Which record of this journal. A client may use one label for several attempts, even at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry(u64);

/// The attempts that are remembered.
#[derive(Debug, Default)]
struct Kept {
    begun: u64,
    attempts: HashMap<Entry, Remembered>,
    /// The newest attempt with each label.
    newest: HashMap<Uuid, Entry>,
    /// Those that have ended, oldest first.
    ended: VecDeque<Entry>,
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

    /// Begins the record of an attempt, which must be ended.
    pub fn begin(&self, mut record: Record) -> Entry {
        let began = Step::new(self.now_ms(), StepKind::Began, "begins");
        record.steps.push(began);
        let told = self.feeds.admits(&record.room);
        let mut kept = self.kept();
        if told {
            self.tell_last_step(&record);
        }
        kept.begun += 1;
        let entry = Entry(kept.begun);
        kept.newest.insert(record.attempt, entry);
        kept.attempts.insert(entry, Remembered { record, told });
        entry
    }

    /// Adds a step to an attempt.
    pub fn tell(&self, entry: Entry, step: Step) {
        let mut kept = self.kept();
        if let Some(Remembered { record, told }) = kept.attempts.get_mut(&entry)
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
    pub fn tell_why(&self, entry: Entry, why: &str) {
        let told = self.kept().attempts.get(&entry).is_some_and(|remembered| {
            let last_first = remembered.record.steps.iter().rev();
            let mut since_it_began = last_first.take_while(|step| step.kind != StepKind::Anew);
            since_it_began.any(|step| step.kind == StepKind::Rejected)
        });
        if !told {
            let step = Step::new(self.now_ms(), StepKind::Rejected, why);
            self.tell(entry, step);
        }
    }

    /// Notes how an attempt ended: `booked`, `transferred` or the last word of a problem's type. The one that ended first is
    /// forgotten for it.
    pub fn end(&self, entry: Entry, outcome: &str) {
        let at_ms = self.now_ms();
        let mut kept = self.kept();
        let Some(Remembered { record, told }) = kept.attempts.get_mut(&entry) else {
            return;
        };
        if record.outcome.is_some() {
            return;
        }
        record.outcome = Some(outcome.to_owned());
        if *told {
            self.feeds.tell(&record.room, || {
                Told::Ended(ToldEnd {
                    at_ms,
                    replica: record.replica.clone(),
                    attempt: record.attempt,
                    outcome: outcome.to_owned(),
                })
            });
        }
        kept.ended.push_back(entry);
        kept.forget();
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

    /// What is remembered of the newest attempt with a label.
    pub fn record(&self, attempt: Uuid) -> Option<Record> {
        let kept = self.kept();
        let remembered = kept.attempts.get(kept.newest.get(&attempt)?);
        remembered.map(|remembered| remembered.record.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget(&mut self) {
        while self.ended.len() > MOST_ATTEMPTS {
            let oldest = self.ended.pop_front();
            let Some((oldest, gone)) = oldest.and_then(|of| Some((of, self.attempts.remove(&of)?)))
            else {
                continue;
            };
            let label = gone.record.attempt;
            if self.newest.get(&label) == Some(&oldest) {
                self.newest.remove(&label);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(attempt: Uuid, who: &str) -> Record {
        Record {
            attempt,
            replica: "A".to_owned(),
            room: "main".to_owned(),
            who: who.to_owned(),
            what: "seat A1".to_owned(),
            outcome: None,
            steps: Vec::new(),
        }
    }

    fn label(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn who_is_under_way_is_remembered_however_many_come_and_go() {
        let journal = Journal::default();
        let ana = journal.begin(record(label(0), "Ana"));
        for number in 1..=2 * MOST_ATTEMPTS {
            let entry = journal.begin(record(label(number), "Ben"));
            journal.end(entry, "seat-taken");
        }
        assert!(journal.record(label(1)).is_none(), "it ended long ago");
        assert!(journal.record(label(2 * MOST_ATTEMPTS)).is_some());
        journal.end(ana, "booked");
        let ana = journal.record(label(0)).and_then(|ana| ana.outcome);
        assert_eq!(ana.as_deref(), Some("booked"));
        let kept = journal.kept();
        assert_eq!(kept.attempts.len(), MOST_ATTEMPTS);
        assert_eq!(kept.newest.len(), MOST_ATTEMPTS);
    }

    /// A label is no key: who tries again before the first try has ended may use it twice.
    #[test]
    fn two_attempts_with_one_label_are_two() {
        let journal = Journal::default();
        let first = journal.begin(record(label(1), "Ana"));
        let second = journal.begin(record(label(1), "Ben"));
        journal.tell(first, Step::new(0.0, StepKind::Asked, "asks"));
        journal.end(first, "booked");
        journal.end(first, "seat-taken");
        let newest = journal.record(label(1)).expect("it is under way");
        assert_eq!((newest.who.as_str(), newest.outcome), ("Ben", None));
        assert_eq!(newest.steps.len(), 1, "it began, and asked nothing yet");
        assert_eq!(
            journal.kept().attempts[&first].record.outcome.as_deref(),
            Some("booked")
        );
        journal.end(second, "seat-taken");
    }
}
