//! The feed of a room: what attempts do on this replica, told as it happens to whoever listens.
//!
//! Promises: telling never waits; a room to which nobody listens costs one look at a number; a listener hears of
//! something at most twice [`COLLECT`] after it was told. Does not promise all: a listener that falls behind hears
//! [`Told::Untold`] instead of what it missed, and of a room in which more attempts begin than anybody could follow only
//! some are told, each of them whole.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use uuid::Uuid;

use super::{Record, Step};

/// What a listener may leave unheard before it misses something: more than several races tell within [`COLLECT`].
const MOST_UNHEARD: usize = 4096;

/// For how long a listener collects what it hears together. Waking a task for each step costs more than all else that
/// is done with it; this is too short to be seen, and a part of the time for which steps wait for each other.
const COLLECT: Duration = Duration::from_millis(20);

/// What is heard together at most.
const MOST_AT_ONCE: usize = 128;

/// Attempts of one room that are told although they begin at once: several races.
const TOLD_AT_ONCE: f64 = 200.0;

/// Attempts of one room that are told each second in the long run. Nobody follows more, and a load that runs while a
/// page is open must not be slowed by it.
const TOLD_EACH_SECOND: f64 = 25.0;

/// How often it is said that not all is told.
const SAY_UNTOLD_EVERY: Duration = Duration::from_secs(1);

/// One thing that a feed tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// A step of an attempt.
    Step(ToldStep),
    /// The end of an attempt.
    Ended(ToldEnd),
    /// The beginning or the end of a race.
    Race(ToldRace),
    /// The room was changed by something that is no attempt.
    Changed,
    /// More happened than is told.
    Untold,
}

impl Told {
    /// When it happened, if it has a place in time.
    pub fn at_ms(&self) -> Option<f64> {
        match self {
            Self::Step(told) => Some(told.step.at_ms),
            Self::Ended(told) => Some(told.at_ms),
            Self::Race(told) => Some(told.at_ms),
            Self::Changed | Self::Untold => None,
        }
    }
}

/// A step, and whose it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToldStep {
    /// On which replica.
    pub replica: String,
    /// Which attempt.
    pub attempt: Uuid,
    /// Who tried.
    pub who: String,
    /// What was tried, in words.
    pub what: String,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
}

/// How an attempt ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToldEnd {
    /// When, in milliseconds since 1970.
    pub at_ms: f64,
    /// On which replica.
    pub replica: String,
    /// Which attempt.
    pub attempt: Uuid,
    /// `booked`, `transferred` or the last word of a problem's type.
    pub outcome: String,
}

/// A race of the room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToldRace {
    /// When, in milliseconds since 1970.
    pub at_ms: f64,
    /// Which race.
    pub race: String,
    /// What became of it.
    pub state: RaceState,
}

/// What became of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RaceState {
    /// It begins; the room is being reset for it.
    Began,
    /// It is over, and what it left behind can be read.
    Ended,
}

impl ToldStep {
    /// A step of the attempt with this record.
    pub(super) fn of(record: &Record, step: &Step) -> Self {
        Self {
            replica: record.replica.clone(),
            attempt: record.attempt,
            who: record.who.clone(),
            what: record.what.clone(),
            step: step.clone(),
        }
    }
}

/// The feeds that somebody listens to.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    /// How many there are: the one look that a step costs when there are none.
    open: AtomicUsize,
    rooms: Mutex<HashMap<String, Feed>>,
}

#[derive(Debug)]
struct Feed {
    sender: broadcast::Sender<Arc<Told>>,
    listeners: usize,
    allowance: Allowance,
}

impl Feeds {
    /// Tells something of a room, which is made only if somebody listens.
    pub(super) fn tell(&self, room: &str, told: impl FnOnce() -> Told) {
        if self.open.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(feed) = self.lock().get(room) {
            // An error means that the last listener is just leaving.
            let _ = feed.sender.send(Arc::new(told()));
        }
    }

    /// Whether an attempt that begins now will be told.
    pub(super) fn admits(&self, room: &str) -> bool {
        if self.open.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut rooms = self.lock();
        let Some(feed) = rooms.get_mut(room) else {
            return true;
        };
        let admitted = feed.allowance.takes_one(Instant::now());
        if !admitted && feed.allowance.says_so(Instant::now()) {
            // As above.
            let _ = feed.sender.send(Arc::new(Told::Untold));
        }
        admitted
    }

    /// Listens from now on.
    pub(super) fn listen(self: &Arc<Self>, room: &str) -> Listener {
        let mut rooms = self.lock();
        let feed = rooms.entry(room.to_owned()).or_insert_with(|| Feed {
            sender: broadcast::Sender::new(MOST_UNHEARD),
            listeners: 0,
            allowance: Allowance::full(Instant::now()),
        });
        feed.listeners += 1;
        let receiver = feed.sender.subscribe();
        self.open.store(rooms.len(), Ordering::Relaxed);
        Listener {
            feeds: Arc::clone(self),
            room: room.to_owned(),
            receiver,
            first: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Feed>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who listens to a room, until the value is dropped.
#[derive(Debug)]
pub struct Listener {
    feeds: Arc<Feeds>,
    room: String,
    receiver: broadcast::Receiver<Arc<Told>>,
    /// The first of those that are being collected, and until when.
    first: Option<(Arc<Told>, tokio::time::Instant)>,
}

impl Listener {
    /// What is told next, with what is told within `COLLECT` after it: at least one and at most `MOST_AT_ONCE`, in
    /// order. A future that is dropped misses nothing.
    pub async fn next(&mut self) -> Vec<Arc<Told>> {
        let until = match &self.first {
            Some((_, until)) => *until,
            None => {
                let first = self.first_told().await;
                let until = tokio::time::Instant::now() + COLLECT;
                self.first = Some((first, until));
                until
            }
        };
        // Nobody is woken by what is told meanwhile. When there is enough for a batch, the rest must not wait for it.
        if self.receiver.len() + 1 < MOST_AT_ONCE {
            tokio::time::sleep_until(until).await;
        }
        self.take()
    }

    /// What was told already; none if there is nothing. For whoever can wait no longer.
    pub fn rest(&mut self) -> Option<Vec<Arc<Told>>> {
        let rest = self.take();
        (!rest.is_empty()).then_some(rest)
    }

    fn take(&mut self) -> Vec<Arc<Told>> {
        let first = self.first.take().map(|(first, _)| first);
        let rest = std::iter::from_fn(|| self.told_already());
        first.into_iter().chain(rest).take(MOST_AT_ONCE).collect()
    }

    async fn first_told(&mut self) -> Arc<Told> {
        match self.receiver.recv().await {
            Ok(told) => told,
            Err(broadcast::error::RecvError::Lagged(_)) => Arc::new(Told::Untold),
            // A feed stays open as long as somebody listens.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    fn told_already(&mut self) -> Option<Arc<Told>> {
        match self.receiver.try_recv() {
            Ok(told) => Some(told),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(Arc::new(Told::Untold)),
            Err(_) => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut rooms = self.feeds.lock();
        if let Some(feed) = rooms.get_mut(&self.room) {
            feed.listeners -= 1;
            if feed.listeners == 0 {
                rooms.remove(&self.room);
            }
        }
        self.feeds.open.store(rooms.len(), Ordering::Relaxed);
    }
}

/// How many attempts may still be told: it fills as time passes.
#[derive(Debug)]
struct Allowance {
    left: f64,
    counted: Instant,
    said: Option<Instant>,
}

impl Allowance {
    fn full(now: Instant) -> Self {
        Self {
            left: TOLD_AT_ONCE,
            counted: now,
            said: None,
        }
    }

    fn takes_one(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.counted);
        self.counted = now;
        self.left = (self.left + passed.as_secs_f64() * TOLD_EACH_SECOND).min(TOLD_AT_ONCE);
        let admitted = self.left >= 1.0;
        if admitted {
            self.left -= 1.0;
        }
        admitted
    }

    /// Whether it is time to say that something is not told.
    fn says_so(&mut self, now: Instant) -> bool {
        let due = self
            .said
            .is_none_or(|said| now.saturating_duration_since(said) >= SAY_UNTOLD_EVERY);
        if due {
            self.said = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_lets_a_crowd_pass_and_a_load_only_in_part() {
        let start = Instant::now();
        let mut allowance = Allowance::full(start);
        let told = (0..1000).filter(|_| allowance.takes_one(start)).count();
        assert_eq!(told, TOLD_AT_ONCE as usize);
        let later = start + Duration::from_secs(1);
        let told = (0..1000).filter(|_| allowance.takes_one(later)).count();
        assert_eq!(told, TOLD_EACH_SECOND as usize);
    }

    #[test]
    fn that_something_is_not_told_is_said_once_a_second() {
        let start = Instant::now();
        let mut allowance = Allowance::full(start);
        assert!(allowance.says_so(start));
        assert!(!allowance.says_so(start + SAY_UNTOLD_EVERY / 2));
        assert!(allowance.says_so(start + SAY_UNTOLD_EVERY));
    }

    #[tokio::test]
    async fn a_listener_hears_its_room_until_it_leaves_and_nothing_stays_behind() {
        let feeds = Arc::new(Feeds::default());
        feeds.tell("main", || unreachable!("nobody listens"));
        let mut first = feeds.listen("main");
        let second = feeds.listen("main");
        feeds.tell("other", || unreachable!("nobody listens there"));
        feeds.tell("main", || Told::Changed);
        assert!(matches!(*first.next().await[0], Told::Changed));
        drop(first);
        assert_eq!(feeds.open.load(Ordering::Relaxed), 1);
        drop(second);
        assert_eq!(feeds.open.load(Ordering::Relaxed), 0);
        assert!(feeds.lock().is_empty());
    }

    #[tokio::test]
    async fn who_falls_behind_hears_that_it_missed_something() {
        let feeds = Arc::new(Feeds::default());
        let mut listener = feeds.listen("main");
        for _ in 0..=MOST_UNHEARD {
            feeds.tell("main", || Told::Changed);
        }
        let heard = listener.next().await;
        assert!(matches!(*heard[0], Told::Untold));
        assert!(matches!(*heard[1], Told::Changed));
    }

    #[tokio::test]
    async fn what_is_told_at_once_is_heard_together_and_in_order_and_nothing_twice() {
        let feeds = Arc::new(Feeds::default());
        let mut listener = feeds.listen("main");
        let tell = |numbers: std::ops::RangeInclusive<usize>| {
            numbers.for_each(|number| feeds.tell("main", || race(number)));
        };
        let never = Duration::ZERO;
        tell(0..=1);
        // Somebody who has something else to do meanwhile.
        assert!(tokio::time::timeout(never, listener.next()).await.is_err());
        tell(2..=MOST_AT_ONCE);
        let together = listener.next().await;
        let rest = listener.next().await;
        assert_eq!((together.len(), rest.len()), (MOST_AT_ONCE, 1));
        let times = together.iter().chain(&rest).map(|told| told.at_ms());
        assert!(times.eq((0..=MOST_AT_ONCE).map(|number| Some(number as f64))));
    }

    #[tokio::test]
    async fn who_hears_enough_for_a_batch_does_not_wait_for_more() {
        let feeds = Arc::new(Feeds::default());
        let mut listener = feeds.listen("main");
        for number in 0..2 * MOST_AT_ONCE {
            feeds.tell("main", || race(number));
        }
        for _ in 0..2 {
            let at_once = tokio::time::timeout(Duration::ZERO, listener.next()).await;
            assert_eq!(at_once.map(|heard| heard.len()), Ok(MOST_AT_ONCE));
        }
    }

    fn race(number: usize) -> Told {
        Told::Race(ToldRace {
            at_ms: number as f64,
            race: "crowd".to_owned(),
            state: RaceState::Began,
        })
    }

    #[test]
    fn what_is_told_reads_the_same_at_the_other_end() {
        let step = Told::Step(ToldStep {
            replica: "A".to_owned(),
            attempt: Uuid::nil(),
            who: "Ana".to_owned(),
            what: "Ana books A1".to_owned(),
            step: Step::new(1.5, crate::journal::StepKind::Asked, "asks table"),
        });
        let line = serde_json::to_string(&step).unwrap();
        let read: Told = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
        assert_eq!(read.at_ms(), Some(1.5));
    }
}
