//! One key, two processes of the operating system, sixteen tasks in each: a counter in a file must come out exact, and
//! the tokens must rise in the order of the counts.
//!
//! Two services inside one process are two processes to a lock server, but not to a mutex, a runtime or a client's
//! shared connection. So each system is put to this test, too, and a lock that is none shows that it can fail.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use doublebook::lock::{Key, LockError, LockService, Token, Trips, Wish, systems::Mutex};
use serde::{Deserialize, Serialize};
use tokio::{process::Command, task::JoinSet, time::timeout};

use crate::{
    pair::{PATIENCE, wish},
    systems::Address,
};

/// Tasks in each of the two processes.
const TASKS: usize = 16;

/// How long one of them waits for the lock: all others may come first, on a slow machine.
const WAIT: Duration = Duration::from_secs(120);

/// How long all of it may take.
const DEADLINE: Duration = Duration::from_secs(600);

/// What a process is told to do.
const ORDER: &str = "DOUBLEBOOK_CONTRACT_ORDER";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    /// Where the lock system is; without it, each process has a mutex of its own.
    address: Option<Address>,
    /// How far the counter is to come.
    goal: u64,
    /// Holds the counter and what each process has to say.
    folder: PathBuf,
    name: String,
}

/// What a task saw while it held the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Counted {
    count: u64,
    token: Option<i64>,
}

/// Counts up to `goal` in two processes.
pub async fn count(address: Option<Address>, goal: u64) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    std::fs::write(counter(folder.path()), "0")?;
    let orders = ["ana", "ben"].map(|name| Order {
        address: address.clone(),
        goal,
        folder: folder.path().to_owned(),
        name: name.to_owned(),
    });
    let began = Instant::now();
    let [ana, ben] = orders.map(|order| tokio::spawn(timeout(DEADLINE, process(order))));
    let mut counts = ana.await???;
    let bens = ben.await???;
    let shares = (counts.len(), bens.len());
    counts.extend(bens);
    counts.sort_unstable();
    println!(
        "{} counts in {:?}, {shares:?} by each process",
        counts.len(),
        began.elapsed()
    );
    let last = std::fs::read_to_string(counter(folder.path()))?.parse()?;
    Ok(Outcome { counts, last })
}

/// What came of it.
pub struct Outcome {
    counts: Vec<Counted>,
    last: u64,
}

impl Outcome {
    /// No count was lost, and no token fell.
    pub fn is_exact(&self, goal: u64) -> Result<()> {
        ensure!(
            self.last == goal,
            "the counter stands at {} of {goal}",
            self.last
        );
        let each_once = self.counts.iter().map(|counted| counted.count).eq(1..=goal);
        ensure!(each_once, "{} counts for {goal}", self.counts.len());
        for pair in self.counts.windows(2) {
            let [before, after] = pair else {
                unreachable!()
            };
            ensure!(before.token < after.token, "{before:?}, then {after:?}");
        }
        Ok(())
    }
}

fn counter(folder: &Path) -> PathBuf {
    folder.join("counter")
}

/// Starts this test program again, to do nothing but its work.
async fn process(order: Order) -> Result<Vec<Counted>> {
    let program = std::env::current_exe()?;
    let ended = Command::new(program)
        .args([
            "processes::a_process_of_its_own",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(ORDER, serde_json::to_string(&order)?)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.success(), "{}: {said}", order.name);
    let report = std::fs::read_to_string(report(&order))?;
    Ok(serde_json::from_str(&report)?)
}

fn report(order: &Order) -> PathBuf {
    order.folder.join(&order.name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in the processes that other tests start"]
async fn a_process_of_its_own() -> Result<()> {
    let Ok(order) = std::env::var(ORDER) else {
        println!("nobody gave an order");
        return Ok(());
    };
    let order: Order = serde_json::from_str(&order)?;
    let system = match &order.address {
        Some(address) => address.open().await?,
        None => Arc::new(Mutex::default()),
    };
    let service = LockService::new(system);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(count_on(service.clone(), order.clone()));
    }
    let mut counted = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        counted.extend(ended??);
    }
    ensure!(
        service.settle(PATIENCE).await,
        "something is still under way"
    );
    std::fs::write(report(&order), serde_json::to_string(&counted)?)?;
    Ok(())
}

async fn count_on(service: LockService, order: Order) -> Result<Vec<Counted>> {
    let key: Key = "counter".parse()?;
    let mut counted = Vec::new();
    let began = Instant::now();
    loop {
        let wish = Wish {
            wait: WAIT,
            trips: Trips::default(),
            ..wish(&["counter"])
        };
        let held = match service.acquire(wish).await {
            // The server stood still; what it was asked for is given back.
            Err(LockError::Unavailable { .. }) if began.elapsed() < DEADLINE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            answer => answer?,
        };
        let seen: u64 = std::fs::read_to_string(counter(&order.folder))?
            .parse()
            .context("half of a count")?;
        if seen >= order.goal {
            return Ok(counted);
        }
        // Longer than a write, so that a second holder would read what is about to be replaced.
        tokio::time::sleep(Duration::from_micros(rand::random_range(0..300))).await;
        replace(&counter(&order.folder), seen + 1, &order.name)?;
        let token = held.token(&key).map(Token::get);
        counted.push(Counted {
            count: seen + 1,
            token,
        });
        drop(held);
    }
}

/// All of it or nothing, so that a second holder sees an old count and not half of one.
fn replace(file: &Path, count: u64, name: &str) -> Result<()> {
    let draft = file.with_extension(format!("{name}-{:?}", std::thread::current().id()));
    std::fs::write(&draft, count.to_string())?;
    Ok(std::fs::rename(draft, file)?)
}

/// Two mutexes are no lock, and this is how that looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_with_a_mutex_each_lose_counts() -> Result<()> {
    const GOAL: u64 = 2_000;
    let outcome = count(None, GOAL).await?;
    let Err(seen) = outcome.is_exact(GOAL) else {
        anyhow::bail!("nobody saw that there was no lock");
    };
    println!("seen: {seen}");
    Ok(())
}

/// Makes a test that counts to this goal with this system. Bug 27: both processes are on one host, and the tasks of each
/// share one client.
macro_rules! counts_in_two_processes {
    ($connect:expr, $goal:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn thirty_two_tasks_in_two_processes_count_exactly() -> anyhow::Result<()> {
            let (address, _kept) = $connect.await?;
            let outcome = crate::processes::count(Some(address), $goal).await?;
            outcome.is_exact($goal)
        }
    };
}

pub(crate) use counts_in_two_processes;
