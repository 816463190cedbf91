//! Sends what the schedule says, when it says it.
//!
//! Promises: in the open model a request is sent when its time has come, whatever became of the others, as long as
//! fewer are under way than the limit; one that had to wait counts its wait. In the closed model each client sends when
//! it has its answer. Every attempt that is begun ends in the history.

mod closed;
mod lane;
mod open;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use closed::clients;
pub use lane::{Lane, Recorded};

use super::schedule::Arrival;

/// What is to be sent.
#[derive(Debug, Clone)]
pub enum Plan {
    /// Everything at its time.
    Open {
        /// All of it.
        arrivals: Arc<[Arrival]>,
        /// How many may be under way at once.
        in_flight: usize,
    },
    /// By so many clients, each in its own time.
    Closed {
        /// How many.
        clients: usize,
    },
}

/// Drives one turn of a side: `turn` is a part of the side's own time, which stands still between its turns.
pub async fn turn(lane: &Arc<Lane>, plan: &Plan, turn: Range<Duration>, stop: &CancellationToken) {
    let begun = Instant::now();
    let driven = async {
        match plan {
            Plan::Open {
                arrivals,
                in_flight,
            } => open::turn(lane, arrivals, *in_flight, &turn, stop).await,
            Plan::Closed { clients } => closed::turn(lane, *clients, &turn, stop).await,
        }
    };
    // After a stop nothing more is begun, and what is under way may take long.
    let stopped = async {
        stop.cancelled().await;
        begun.elapsed()
    };
    tokio::pin!(driven);
    let end = tokio::select! {
        biased;
        after = stopped => {
            driven.await;
            turn.end.min(turn.start + after)
        }
        () = &mut driven => turn.end,
    };
    lane.turn_ends(turn.start..end);
}

/// The turns of all sides, in the order in which they run: 1 2, 2 1, 1 2 …, so that what grows slower in time does not
/// always meet the same side.
pub fn turns(length: Duration, turn: Duration, sides: usize) -> Vec<(usize, Range<Duration>)> {
    let mut turns = Vec::new();
    let (mut start, mut is_back) = (Duration::ZERO, false);
    while start < length && !turn.is_zero() {
        let range = start..length.min(start + turn);
        let mut order: Vec<usize> = (0..sides).collect();
        if is_back {
            order.reverse();
        }
        turns.extend(order.into_iter().map(|side| (side, range.clone())));
        (start, is_back) = (range.end, !is_back);
    }
    turns
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::turns;

    #[test]
    fn sides_take_turns_there_and_back_and_each_gets_all_of_the_time() {
        let s = Duration::from_secs;
        assert_eq!(
            turns(s(5), s(2), 2),
            [
                (0, s(0)..s(2)),
                (1, s(0)..s(2)),
                (1, s(2)..s(4)),
                (0, s(2)..s(4)),
                (0, s(4)..s(5)),
                (1, s(4)..s(5)),
            ]
        );
        assert_eq!(turns(s(5), s(5), 3).len(), 3);
    }
}
