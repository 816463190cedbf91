//! Failpoints and gates: how an attempt is made to stand still at a named point, so that a race is certain.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::name::Name;

/// The longest pause, and the one taken when none is given.
pub const LONGEST_PAUSE_MS: u32 = 60_000;

/// The named points of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// After each grant of a lock.
    AfterGrant,
    /// After all rows were read.
    AfterRead,
    /// After the last look at the lease, before the write.
    BeforeWrite,
    /// After the write, before its commit.
    BeforeCommit,
    /// After the commit's result, before the release.
    AfterCommit,
}

/// A wish that an attempt waits, once, at a point.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Failpoint {
    /// Where.
    pub at: Point,
    /// At most how long, in milliseconds.
    #[serde(default = "longest_pause")]
    #[schema(maximum = 60_000)]
    pub ms: u32,
    /// Which gate lets it go earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Name>,
    /// Whether its renewal stands still too, as when the whole process sleeps.
    #[serde(default)]
    pub freeze: bool,
}

fn longest_pause() -> u32 {
    LONGEST_PAUSE_MS
}

impl Failpoint {
    /// How long it waits at most.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.ms.into())
    }
}

/// An attempt that waits at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AtGate {
    /// Which attempt.
    pub attempt: Uuid,
    /// On which replica.
    pub replica: String,
    /// At which point of its walk.
    pub at: Point,
}

/// The gates of this replica: who waits at which, by room.
#[derive(Debug, Default)]
pub struct Gates {
    waiting: Mutex<HashMap<(String, Name), Vec<Waiter>>>,
    /// Waiters are numbered: the UUID of an attempt is a client's label, and may come twice.
    next: AtomicU64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    who: AtGate,
    go: oneshot::Sender<()>,
}

impl Gates {
    /// Waits until the gate is opened from now on; an earlier opening does not count. A future that is dropped
    /// stands there no longer.
    pub async fn wait(&self, room: &str, gate: &Name, who: AtGate) {
        let place = (room.to_owned(), gate.clone());
        let (go, gone) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock()
            .entry(place.clone())
            .or_default()
            .push(Waiter { number, who, go });
        let _leave = Leave {
            gates: self,
            place,
            number,
        };
        // An error means that the gate is gone, which opens it as well.
        let _ = gone.await;
    }

    /// Who waits at a gate.
    pub fn waiting(&self, room: &str, gate: &Name) -> Vec<AtGate> {
        let waiting = self.lock();
        let at_gate = waiting.get(&(room.to_owned(), gate.clone()));
        at_gate
            .into_iter()
            .flatten()
            .map(|waiter| waiter.who.clone())
            .collect()
    }

    /// Lets go whoever waits at a gate now, and tells who that was.
    pub fn open(&self, room: &str, gate: &Name) -> Vec<AtGate> {
        let at_gate = self
            .lock()
            .remove(&(room.to_owned(), gate.clone()))
            .unwrap_or_default();
        at_gate
            .into_iter()
            .map(|waiter| {
                // Whoever has just left by itself needs no word.
                let _ = waiter.go.send(());
                waiter.who
            })
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, Name), Vec<Waiter>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a waiter out of its gate, however its wait ended.
struct Leave<'a> {
    gates: &'a Gates,
    place: (String, Name),
    number: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut waiting = self.gates.lock();
        if let Some(at_gate) = waiting.get_mut(&self.place) {
            at_gate.retain(|waiter| waiter.number != self.number);
            if at_gate.is_empty() {
                waiting.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn who() -> AtGate {
        AtGate {
            attempt: Uuid::new_v4(),
            replica: "A".to_owned(),
            at: Point::AfterRead,
        }
    }

    #[tokio::test]
    async fn an_opening_lets_go_who_waits_now_and_is_not_remembered() {
        let gates = Arc::new(Gates::default());
        let gate: Name = "g".parse().unwrap();
        assert_eq!(gates.open("main", &gate), []);

        let ana = who();
        let waits = tokio::spawn({
            let (gates, gate, ana) = (Arc::clone(&gates), gate.clone(), ana.clone());
            async move { gates.wait("main", &gate, ana).await }
        });
        while gates.waiting("main", &gate).is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(gates.waiting("other", &gate), []);
        assert_eq!(gates.open("main", &gate), [ana]);
        waits.await.unwrap();
        assert_eq!(gates.waiting("main", &gate), []);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_trace() {
        let gates = Gates::default();
        let gate: Name = "g".parse().unwrap();
        let waits = gates.wait("main", &gate, who());
        assert!(
            tokio::time::timeout(Duration::from_millis(1), waits)
                .await
                .is_err()
        );
        assert!(gates.lock().is_empty());
    }
}
