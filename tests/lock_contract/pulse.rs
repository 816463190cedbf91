//! Notices that the machine or a lock server stood still while a case was told. (etcd and ZooKeeper answer this question
//! from the memory of the process: there, only the machine is noticed.)
//!
//! A lease runs out in a stall, and rightly so: what a case says of a lease in time is said of a machine that goes on.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::Result;
use doublebook::lock::ReleaseMode;
use tokio_util::task::AbortOnDropHandle;

use crate::pair::{LONG, Pair, claim};

/// The pause between two beats.
const BEAT: Duration = Duration::from_millis(20);

/// How often a case is told at most.
const TELLINGS: usize = 3;

/// Asks the lock system for something that changes nothing, again and again.
struct Pulse {
    beats: Arc<Mutex<Beats>>,
    _beating: AbortOnDropHandle<()>,
}

struct Beats {
    last: Instant,
    longest: Duration,
}

impl Pulse {
    fn of(pair: &Pair) -> Self {
        let beats = Arc::new(Mutex::new(Beats {
            last: Instant::now(),
            longest: Duration::ZERO,
        }));
        let (system, told) = (pair.ben.system().clone(), beats.clone());
        let beating = tokio::spawn(async move {
            let stranger = claim(&["pulse"], LONG);
            loop {
                drop(system.release(&stranger, ReleaseMode::OwnerChecked).await);
                told.lock().expect("beats").beat();
                tokio::time::sleep(BEAT).await;
            }
        });
        Self {
            beats,
            _beating: AbortOnDropHandle::new(beating),
        }
    }

    /// The longest time between two beats, that since the last one included.
    fn longest(&self) -> Duration {
        let mut beats = self.beats.lock().expect("beats");
        beats.beat();
        beats.longest
    }
}

impl Beats {
    fn beat(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
    }
}

/// Tells a case; and again, against a new pair, if it failed while something stood still for as long as can be the reason.
pub async fn without_a_stall<Kept>(
    connect: impl AsyncFn() -> Result<(Pair, Kept)>,
    case: impl AsyncFn(&Pair) -> Result<()>,
    excuse: impl Fn(&Pair) -> Duration,
) -> Result<()> {
    let mut telling = 1;
    loop {
        let (pair, _kept) = connect().await?;
        let pulse = Pulse::of(&pair);
        let told = case(&pair).await;
        let stall = pulse.longest();
        if told.is_ok() || stall < excuse(&pair) || telling == TELLINGS {
            return told;
        }
        println!("{told:?}, but something stood still for {stall:?}: once more");
        telling += 1;
    }
}
