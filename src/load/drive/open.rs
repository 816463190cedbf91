//! The open model.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Lane;
use crate::load::schedule::Arrival;

/// How long a pacer sleeps at once, so that it hears of a stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// What is due at the end of a turn is still begun, if it is begun within this.
const GRACE: Duration = Duration::from_millis(100);

/// Keeps the time of one turn. It runs on a thread of its own, since the runtime's timers are up to a millisecond late.
struct Pacer {
    lane: Arc<Lane>,
    origin: Instant,
    deadline: Instant,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    under_way: TaskTracker,
    runtime: Handle,
}

pub(super) async fn turn(
    lane: &Arc<Lane>,
    arrivals: &Arc<[Arrival]>,
    in_flight: usize,
    turn: &Range<Duration>,
    stop: &CancellationToken,
) {
    let origin = Instant::now();
    let first = arrivals.partition_point(|arrival| arrival.at < turn.start);
    let end = arrivals.partition_point(|arrival| arrival.at < turn.end);
    let pacer = Pacer {
        lane: Arc::clone(lane),
        origin,
        deadline: origin + (turn.end - turn.start) + GRACE,
        places: Arc::new(Semaphore::new(in_flight)),
        stop: stop.clone(),
        under_way: TaskTracker::new(),
        runtime: Handle::current(),
    };
    let under_way = pacer.under_way.clone();
    let (start, paced) = (turn.start, Arc::clone(arrivals));
    let paced = tokio::task::spawn_blocking(move || pacer.paces(&paced, first..end, start));
    let begun = paced.await.unwrap_or(first);
    under_way.close();
    under_way.wait().await;
    if !stop.is_cancelled() {
        lane.were_not_begun(arrivals.get(begun..end).unwrap_or_default());
    }
}

impl Pacer {
    /// Begins each arrival at its time; returns the number of the first one that it did not begin.
    fn paces(&self, arrivals: &[Arrival], range: Range<usize>, start: Duration) -> usize {
        for number in range.clone() {
            let arrival = arrivals[number];
            let due = self.origin + (arrival.at - start);
            if !self.sleeps_until(due) {
                return number;
            }
            let Some(place) = self.place() else {
                return number;
            };
            let lane = Arc::clone(&self.lane);
            let attempt = async move {
                lane.attempt(number, arrival.action, due, arrival.at).await;
                drop(place);
            };
            self.under_way.spawn_on(attempt, &self.runtime);
        }
        range.end
    }

    /// False when it was told to stop meanwhile.
    fn sleeps_until(&self, due: Instant) -> bool {
        loop {
            if self.stop.is_cancelled() {
                return false;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LONGEST_SLEEP));
        }
    }

    /// A place among those that are under way; none when there was none until the end.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let place = async {
            tokio::select! {
                place = Arc::clone(&self.places).acquire_owned() => place.ok(),
                () = tokio::time::sleep_until(self.deadline.into()) => None,
                () = self.stop.cancelled() => None,
            }
        };
        self.runtime.block_on(place)
    }
}
