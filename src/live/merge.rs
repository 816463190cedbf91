//! Steps of several replicas in the order of their times.
//!
//! Promises: each comes out at most [`WINDOW`] after it came in, whoever else is silent; whatever comes in within
//! [`WINDOW`] minus [`SLACK`] of what happened before it comes out in order. Does not promise more: what was under way
//! longer comes out late, and bears the time at which it happened.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a step waits for earlier ones of other replicas: many times what a line takes between hosts of one site,
/// and too short to be noticed.
pub(super) const WINDOW: Duration = Duration::from_millis(100);

/// Whatever would be due so soon after the first comes out together with it: readers are woken at most this often.
pub(super) const SLACK: Duration = Duration::from_millis(40);

/// What waits at most: more than a replica tells of a room in several windows. Beyond it the earliest go at once.
const MOST_WAITING: usize = 10_000;

/// What waits for its turn.
#[derive(Debug)]
pub(super) struct Merge<T> {
    /// In the order of their times.
    waiting: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    at_ms: f64,
    came: Instant,
    what: T,
}

impl<T> Default for Merge<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
        }
    }
}

impl<T> Merge<T> {
    /// Takes something that happened at `at_ms`; of two of the same time, the one that came first is first.
    pub(super) fn put(&mut self, at_ms: f64, came: Instant, what: T) {
        let place = self
            .waiting
            .partition_point(|waiting| waiting.at_ms <= at_ms);
        let waiting = Waiting { at_ms, came, what };
        self.waiting.insert(place, waiting);
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.waiting.len() > MOST_WAITING {
            return self.waiting.front().map(|first| first.came);
        }
        let came = self.waiting.iter().map(|waiting| waiting.came);
        came.min().map(|came| came + WINDOW)
    }

    /// What is due, in order, with everything that happened before it.
    pub(super) fn take(&mut self, now: Instant) -> Vec<T> {
        let too_many = self.waiting.len().saturating_sub(MOST_WAITING);
        let is_due = |waiting: &Waiting<T>| waiting.came + WINDOW <= now + SLACK;
        let due = self.waiting.iter().rposition(is_due);
        let count = due.map_or(0, |last| last + 1).max(too_many);
        let taken = self.waiting.drain(..count);
        taken.map(|waiting| waiting.what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_lines_of_another_replica_find_their_place() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut merge = Merge::default();
        merge.put(10.0, start, "A asks");
        merge.put(30.0, start + ms(1), "A reads");
        merge.put(20.0, start + ms(50), "B asks");
        assert_eq!(merge.due(), Some(start + WINDOW));
        assert!(merge.take(start + ms(50)).is_empty());
        assert_eq!(merge.take(start + WINDOW), ["A asks", "B asks", "A reads"]);
        assert_eq!(merge.due(), None);
    }

    #[test]
    fn nobody_waits_longer_than_the_window_for_a_silent_replica() {
        let start = Instant::now();
        let mut merge = Merge::default();
        merge.put(1.0, start, "first");
        merge.put(2.0, start + WINDOW, "second");
        assert_eq!(merge.take(start + WINDOW), ["first"]);
        assert_eq!(merge.due(), Some(start + WINDOW + WINDOW));
    }

    #[test]
    fn what_happened_at_one_time_stays_in_the_order_in_which_it_came() {
        let start = Instant::now();
        let mut merge = Merge::default();
        for n in 0..3 {
            merge.put(1.0, start, n);
        }
        assert_eq!(merge.take(start + WINDOW), [0, 1, 2]);
    }

    #[test]
    fn a_flood_does_not_wait() {
        let start = Instant::now();
        let mut merge = Merge::default();
        for n in 0..=MOST_WAITING {
            merge.put(n as f64, start, n);
        }
        assert_eq!(merge.due(), Some(start));
        assert_eq!(merge.take(start), [0]);
    }
}
