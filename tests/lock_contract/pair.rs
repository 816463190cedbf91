//! Two services over one store, as in two processes, and the words that the cases use.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use doublebook::lock::{
    Answer, Claim, Grant, Held, Key, Keys, LockError, LockService, LockSystem, Owner, ReleaseMode,
    Released, Trips, Waiting, Wish,
};
use nix::unistd::Pid;

/// How long a condition may take that should hold at once. Generous: a slow machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A lease that runs out within a test. The one wait that cannot be avoided is for it to be over.
pub const SHORT: Duration = Duration::from_millis(300);

/// How long an ask may take for who does not wait.
pub const AT_ONCE: Duration = Duration::from_secs(1);

/// A lease that does not run out within a test.
pub const LONG: Duration = Duration::from_secs(60);

/// The two services. Each has its own connection to the store.
pub struct Pair {
    pub ana: LockService,
    pub ben: LockService,
    /// A lease that runs out within a test: [`SHORT`], or the shortest that the system has.
    pub lease: Duration,
}

impl Pair {
    pub fn new(ana: impl LockSystem, ben: impl LockSystem) -> Self {
        Self::over(Arc::new(ana), Arc::new(ben))
    }

    pub fn over(ana: Arc<dyn LockSystem>, ben: Arc<dyn LockSystem>) -> Self {
        Self {
            lease: ana.lease_time(SHORT).unwrap_or(SHORT),
            ana: LockService::new(ana),
            ben: LockService::new(ben),
        }
    }

    /// Wants the keys for a short lease that nobody renews.
    pub fn short(&self, texts: &[&str]) -> Wish {
        Wish {
            ttl: self.lease,
            ..short(texts)
        }
    }
}

pub fn key(text: &str) -> Key {
    text.parse().expect("a test names good keys")
}

pub fn keys(texts: &[&str]) -> Keys {
    Keys::new(texts.iter().map(|text| key(text))).expect("a test names keys")
}

/// Wants the keys for a long time, renewed, and waits for them as long as a test may.
pub fn wish(texts: &[&str]) -> Wish {
    Wish {
        keys: keys(texts),
        ttl: LONG,
        renew: true,
        may_freeze: false,
        wait: PATIENCE,
        waiting: Waiting::Notify,
        release: ReleaseMode::OwnerChecked,
        trips: Trips::default(),
    }
}

/// Wants the keys now or not at all.
pub fn at_once(texts: &[&str]) -> Wish {
    Wish {
        wait: Duration::ZERO,
        ..wish(texts)
    }
}

/// Wants the keys for a short lease that nobody renews.
pub fn short(texts: &[&str]) -> Wish {
    Wish {
        ttl: SHORT,
        renew: false,
        ..wish(texts)
    }
}

/// A request as the layers would send it.
pub fn claim(texts: &[&str], ttl: Duration) -> Claim {
    Claim {
        owner: Owner::random(),
        keys: keys(texts),
        ttl,
        alone: false,
        waits: false,
        patience: Duration::from_secs(5),
    }
}

/// Asks the lock system itself; it must grant.
pub async fn grant(service: &LockService, claim: &Claim) -> anyhow::Result<Grant> {
    match service.system().ask(claim).await? {
        Answer::Granted(grant) => Ok(grant),
        Answer::Refused { key, .. } => {
            anyhow::bail!("{key} was refused although it should be free")
        }
    }
}

/// Frees what a claim has, at the lock system itself.
pub async fn free(service: &LockService, claim: &Claim) -> Result<Released, LockError> {
    service
        .system()
        .release(claim, ReleaseMode::OwnerChecked)
        .await
}

/// Whether somebody holds one of the keys, seen by asking for them; again while a busy machine gives no answer. An ask
/// without an answer may be carried out after the next one, and after it was given back; so its lease is short.
pub async fn is_taken(service: &LockService, texts: &[&str]) -> anyhow::Result<bool> {
    let began = Instant::now();
    let mut unanswered = false;
    loop {
        let asked = Wish {
            ttl: Duration::from_secs(2),
            ..at_once(texts)
        };
        match service.acquire(asked).await {
            Ok(held) => {
                held.release().await;
                return Ok(false);
            }
            Err(LockError::Timeout { .. }) if unanswered && began.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(LockError::Timeout { .. }) => return Ok(true),
            Err(LockError::Unavailable { .. } | LockError::Lost(_))
                if began.elapsed() < PATIENCE =>
            {
                unanswered = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Acquires, or says that it was not free in time. Again when the machine stood still until a short lease was over.
pub async fn get(service: &LockService, wish: Wish) -> anyhow::Result<Held> {
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        match service.acquire(wish.clone()).await {
            Ok(held) => return Ok(held),
            // Only what took a good part of its lease may be over when it comes.
            Err(LockError::Lost(_))
                if asked.elapsed() >= wish.ttl / 4 && began.elapsed() < PATIENCE => {}
            Err(error) => {
                anyhow::bail!("{:?} could not be acquired: {error}", wish.keys)
            }
        }
    }
}

/// A renewal comes through in time, whatever hangs.
pub async fn is_renewed_in_time(held: &Held) -> anyhow::Result<()> {
    let first = held.deadline();
    tokio::select! {
        () = held.lost() => anyhow::bail!("the lease was lost"),
        renewed = eventually("it is renewed", async || held.deadline() > first) => renewed,
    }
}

/// Whether the lock system says that it is still held. On a slow machine a node may not answer in its time; that is no
/// answer to this.
pub async fn is_confirmed(held: &Held) -> anyhow::Result<bool> {
    let began = Instant::now();
    loop {
        match held.confirm().await {
            Err(LockError::Unavailable { .. }) if began.elapsed() < PATIENCE => {}
            answer => return Ok(answer?),
        }
    }
}

/// Whether it is neither "acquired" nor "taken", but "nobody can say".
pub fn is_unavailable<T>(answer: &Result<T, LockError>) -> bool {
    matches!(answer, Err(LockError::Unavailable { .. }))
}

/// Who wants this is told within the limit that the lock system is away.
pub async fn is_told_in_time(
    what: &str,
    service: &LockService,
    wish: Wish,
    limit: Duration,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let refused = service.acquire(wish).await;
    let took = began.elapsed();
    println!("{what} was told after {took:?}");
    anyhow::ensure!(is_unavailable(&refused), "{refused:?}");
    anyhow::ensure!(took < limit, "it took {took:?}");
    Ok(())
}

/// A lock system that is back works for all of them within 6 s, without an error.
pub async fn work_again(services: [&LockService; 2], texts: &[&str]) -> anyhow::Result<()> {
    let began = Instant::now();
    for service in services {
        drop(get(service, wish(texts)).await?);
    }
    let took = began.elapsed();
    println!("works {took:?} after it was back");
    anyhow::ensure!(took < Duration::from_secs(6), "it took {took:?}");
    Ok(())
}

/// Looks again and again until the condition holds.
pub async fn eventually(
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) -> anyhow::Result<()> {
    let began = Instant::now();
    while !condition().await {
        anyhow::ensure!(began.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Waits until the last thread of a process that was stopped stands still: until then, some go on answering.
#[cfg_attr(
    not(feature = "full"),
    allow(
        dead_code,
        reason = "the servers with threads are those of the other locks"
    )
)]
pub async fn stands_still(pid: Pid) -> anyhow::Result<()> {
    let threads = format!("/proc/{pid}/task");
    eventually("the server stands still", async || {
        std::fs::read_dir(&threads).is_ok_and(|mut threads| {
            threads.all(|thread| thread.is_ok_and(|thread| is_stopped(&thread.path())))
        })
    })
    .await
}

fn is_stopped(thread: &Path) -> bool {
    let status = std::fs::read_to_string(thread.join("status"));
    status.is_ok_and(|status| status.contains("State:\tT"))
}

/// Waits for what should happen soon.
pub async fn soon<F: Future>(what: &str, future: F) -> anyhow::Result<F::Output> {
    let ended = tokio::time::timeout(PATIENCE, future).await;
    ended.map_err(|_| anyhow::anyhow!("not in {PATIENCE:?}: {what}"))
}
