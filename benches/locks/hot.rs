//! One hot key: two processes with eight waiters each take it again and again, and work for 1 ms while they hold it.
//!
//! The measure is one task alone that does the same: nobody can hand a lock over faster than not at all. Each process
//! is this program again, started as `locks --hot …`, so that nothing but the lock system is shared.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::future::{try_join, try_join_all};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::systems::{self, System};

/// The word that makes this program one of the processes.
pub const CHILD: &str = "--hot";

/// Waiters in each of the two processes.
const WAITERS: usize = 8;

/// How long the crowd is measured, and how long the one alone and the two.
const CROWDED: Duration = Duration::from_secs(10);
const SHORTER: Duration = Duration::from_secs(4);

/// How long each holder works.
const WORK: Duration = Duration::from_millis(1);

/// What was measured.
pub struct Hot {
    /// One cycle of one task alone: take, work, give back.
    pub cycle: Duration,
    /// Grants per second to the crowd.
    pub per_second: f64,
    /// Beside those of one task alone.
    pub of_alone: f64,
    /// The part of the grants that the first process got.
    pub share: f64,
    /// How long a waiter waited: half of them at most, 99 of 100 at most.
    pub p50: Duration,
    pub p99: Duration,
    /// The longest wait if everybody came to turn.
    pub fair: Duration,
    /// Requests for each grant, with two waiters and with sixteen.
    pub requests: Option<[f64; 2]>,
}

/// What one process tells at its end.
#[derive(Serialize, Deserialize)]
struct Told {
    /// How long each grant was waited for, in µs.
    waits: Vec<u64>,
    /// How long it went on, in µs.
    lasted: u64,
}

/// Measures a system whose server is at this address.
pub async fn measure(system: &dyn System, address: &str) -> Result<Hot> {
    let alone = run(system, address, &[1], SHORTER).await?.0;
    let (_, with_two) = run(system, address, &[1, 1], SHORTER).await?;
    let (crowd, with_all) = run(system, address, &[WAITERS, WAITERS], CROWDED).await?;

    let alone_per_second = per_second(&alone);
    let crowd_per_second = per_second(&crowd);
    let cycle = Duration::from_secs_f64(1.0 / alone_per_second);
    let all = crowd.iter().map(|told| told.waits.len()).sum::<usize>();
    let mut waits: Vec<u64> = crowd.iter().flat_map(|told| &told.waits).copied().collect();
    waits.sort_unstable();
    let at = |part: usize| Duration::from_micros(waits[(waits.len() - 1) * part / 100]);
    Ok(Hot {
        cycle,
        per_second: crowd_per_second,
        of_alone: crowd_per_second / alone_per_second,
        share: crowd[0].waits.len() as f64 / all as f64,
        p50: at(50),
        p99: at(99),
        fair: cycle * (2 * WAITERS as u32),
        requests: with_two.zip(with_all).map(<[f64; 2]>::from),
    })
}

fn per_second(told: &[Told]) -> f64 {
    told.iter()
        .map(|told| told.waits.len() as f64 * 1e6 / told.lasted as f64)
        .sum()
}

/// Lets one process for each number of waiters loose on the key; what each tells, and the requests for each grant.
async fn run(
    system: &dyn System,
    address: &str,
    waiters: &[usize],
    time: Duration,
) -> Result<(Vec<Told>, Option<f64>)> {
    let starts = waiters
        .iter()
        .map(|&many| Process::start(system.name(), address, many, time));
    let mut processes = try_join_all(starts).await?;
    let before = system.requests(address).await?;
    try_join_all(processes.iter_mut().map(Process::go)).await?;
    let told = try_join_all(processes.into_iter().map(Process::tells)).await?;
    let after = system.requests(address).await?;
    let grants: usize = told.iter().map(|told| told.waits.len()).sum();
    if told.iter().any(|told| told.waits.is_empty()) {
        bail!("a process of {} got nothing at all", system.name());
    }
    let requests = before.zip(after);
    let each = requests.map(|(before, after)| (after - before) as f64 / grants as f64);
    Ok((told, each))
}

/// One of the processes. Dropped, it is killed.
struct Process {
    child: Child,
}

impl Process {
    /// Starts it and waits until it is connected.
    async fn start(name: &str, address: &str, waiters: usize, time: Duration) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([CHILD, name, address])
            .args([waiters.to_string(), time.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = child.stdout.as_mut().context("no standard output")?;
        said.read_u8()
            .await
            .context("a process ended at its start")?;
        Ok(Self { child })
    }

    async fn go(&mut self) -> Result<()> {
        let input = self.child.stdin.as_mut().context("no standard input")?;
        Ok(input.write_all(b"go\n").await?)
    }

    async fn tells(mut self) -> Result<Told> {
        let mut said = self.child.stdout.take().context("no standard output")?;
        let mut text = String::new();
        let (_, ended) = try_join(said.read_to_string(&mut text), self.child.wait()).await?;
        anyhow::ensure!(ended.success(), "a process failed: {ended}");
        Ok(serde_json::from_str(&text)?)
    }
}

/// What such a process does: says when it is connected, waits for the word to go, and tells what it got.
pub async fn child(words: &[String]) -> Result<()> {
    let [name, address, waiters, time] = words else {
        bail!("{CHILD} wants a system, an address, the number of waiters and a time in ms");
    };
    let waiters: usize = waiters.parse()?;
    let time = Duration::from_millis(time.parse()?);
    let system = systems::all()
        .into_iter()
        .find(|system| system.name() == name);
    let lock = system.context("no such system")?.open(address).await?;
    // Connected, and listening where the system has something to listen to.
    let own = format!("warm-{}", std::process::id());
    lock.hold(&own, || {}).await?;

    println!();
    let mut word = String::new();
    let mut input = BufReader::new(tokio::io::stdin());
    if input.read_line(&mut word).await? == 0 {
        bail!("whoever started this is gone");
    }
    let began = Instant::now();
    let tasks = (0..waiters).map(|_| {
        let lock = lock.clone();
        tokio::spawn(async move {
            let mut waits = Vec::new();
            while began.elapsed() < time {
                waits.push(lock.hold("hot", work).await?);
            }
            anyhow::Ok(waits)
        })
    });
    let mut waits = Vec::new();
    for waited in tasks.collect::<Vec<_>>() {
        let waited = waited.await??.into_iter();
        waits.extend(waited.map(|waited| waited.as_micros() as u64));
    }
    let lasted = began.elapsed().as_micros() as u64;
    println!("{}", serde_json::to_string(&Told { waits, lasted })?);
    Ok(())
}

/// Works, measured: a sleep would last as long as the timer likes.
fn work() {
    let began = Instant::now();
    while began.elapsed() < WORK {
        std::hint::spin_loop();
    }
}
