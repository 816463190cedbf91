//! What a free lock costs: taken and given back by one task, beside the bare requests, in blocks that alternate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::systems::{Bare, Lock, Once, System};

/// How many blocks each of them gets. The median of the blocks counts, so that what disturbs a few does not.
const BLOCKS: usize = 25;

/// How long a block lasts.
const BLOCK: Duration = Duration::from_millis(80);

/// What was measured, each as the median time of one round.
pub struct Free {
    pub lock: Duration,
    pub bare: Vec<BareFigure>,
}

pub struct BareFigure {
    pub what: &'static str,
    pub at_most: Option<f64>,
    pub time: Duration,
}

/// Measures a system whose server is at this address.
pub async fn measure(system: &dyn System, address: &str) -> Result<Free> {
    let lock = system.open(address).await?;
    let bare: Arc<[Bare]> = system.bare(address).await?.into();
    // On a worker thread, where a server's tasks run, too; the main thread would pay for waking one up.
    tokio::spawn(alternate(lock, bare)).await?
}

async fn alternate(lock: Arc<dyn Lock>, bare: Arc<[Bare]>) -> Result<Free> {
    let lock = taken_and_given_back(lock);
    let all: Vec<&Once> = [&lock]
        .into_iter()
        .chain(bare.iter().map(|bare| &bare.once))
        .collect();
    let mut times = vec![Vec::with_capacity(BLOCKS); all.len()];
    // The first block of each makes connections and loads scripts, and does not count.
    for block in 0..=BLOCKS {
        for (once, times) in all.iter().zip(&mut times) {
            let mean = mean(once).await?;
            if block > 0 {
                times.push(mean);
            }
        }
    }
    let mut medians = times.into_iter().map(median);
    Ok(Free {
        lock: medians.next().unwrap_or_default(),
        bare: bare
            .iter()
            .zip(medians)
            .map(|(bare, time)| BareFigure {
                what: bare.what,
                at_most: bare.at_most,
                time,
            })
            .collect(),
    })
}

fn taken_and_given_back(lock: Arc<dyn Lock>) -> Once {
    Box::new(move || {
        let lock = lock.clone();
        Box::pin(async move { lock.hold("free", || {}).await.map(drop) })
    })
}

/// The mean time of a round in one block.
async fn mean(once: &Once) -> Result<Duration> {
    let began = Instant::now();
    let mut rounds = 0;
    while began.elapsed() < BLOCK {
        once().await?;
        rounds += 1;
    }
    Ok(began.elapsed() / rounds)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
