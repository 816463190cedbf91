//! Giving a lock back, in the background.
//!
//! Nobody has to wait for it: it runs in a task of its own, with retries until the lease would have run out anyway.
//! It does not promise that the lock system hears of it; then the lease runs out.
//!
//! The first try is sent at once. Those that are repeated take turns, so that a lock system that answers nobody is not
//! met with all releases of its outage at once, each over a connection of its own.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    backoff::Backoff,
    claim::Claim,
    error::LockError,
    lease,
    queue::MOST_WAITERS,
    service::Shared,
    system::{ReleaseMode, Released},
};

/// How long one try may take, so that a stuck connection leaves time for another.
const TRY: Duration = Duration::from_secs(1);

/// The first and the longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// How many releases without an answer are sent again at a time.
const MOST_REPEATED: usize = 16;

/// How many wait for that. Each costs a task; beyond it, a lease runs out by itself.
const MOST_UNANSWERED: usize = MOST_WAITERS;

/// Limits the releases that are sent again.
#[derive(Debug)]
pub(super) struct Repeats {
    places: Semaphore,
    turns: Semaphore,
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            places: Semaphore::new(MOST_UNANSWERED),
            turns: Semaphore::new(MOST_REPEATED),
        }
    }
}

/// How a release ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// All keys were freed.
    Released,
    /// At least one key was not the owner's any more; the others were freed.
    NotTheOwner,
    /// The lock system did not say. It may have been freed; if not, the lease runs out by itself.
    Unknown,
}

/// A release under way. It goes on when this is dropped.
#[derive(Debug)]
pub struct Releasing(JoinHandle<ReleaseOutcome>);

impl Future for Releasing {
    type Output = ReleaseOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ReleaseOutcome> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|ended| ended.unwrap_or(ReleaseOutcome::Unknown))
    }
}

/// Starts to give back what the claim has. `until` is when the lease is over by itself.
pub(super) fn start(
    shared: &Arc<Shared>,
    claim: Claim,
    mode: ReleaseMode,
    until: Instant,
) -> Releasing {
    let release = until_answered(shared.clone(), claim, mode, until);
    Releasing(shared.spawn(release))
}

/// Gives back what a claim may have got, or its place in the lock system's queue. Always owner-checked, since it may
/// have got nothing. Retried for as long as a grant could last.
pub(super) fn withdraw(shared: &Arc<Shared>, claim: Claim) -> Releasing {
    let until = lease::deadline(Instant::now(), claim.ttl);
    start(shared, claim, ReleaseMode::OwnerChecked, until)
}

/// Tells a system that queues that the lease of a claim is over. It may keep the lease for as long as the process
/// lives; all others have ended it by themselves.
pub(super) fn is_over(shared: &Arc<Shared>, claim: &Claim) {
    if shared.system.queues() {
        // Nobody waits for it.
        drop(withdraw(shared, claim.clone()));
    }
}

async fn until_answered(
    shared: Arc<Shared>,
    mut claim: Claim,
    mode: ReleaseMode,
    until: Instant,
) -> ReleaseOutcome {
    claim.patience = TRY;
    match once(&shared, &claim, mode).await {
        Some(Released::Released) => ReleaseOutcome::Released,
        Some(Released::NotTheOwner) => ReleaseOutcome::NotTheOwner,
        // Repeated, it could free a lock that was granted in between, to anybody.
        None if mode == ReleaseMode::Blind => ReleaseOutcome::Unknown,
        None => repeat(&shared, &claim, until).await,
    }
}

/// Sends an owner-checked release again until it is answered.
async fn repeat(shared: &Shared, claim: &Claim, until: Instant) -> ReleaseOutcome {
    let Ok(_place) = shared.repeats.places.try_acquire() else {
        return ReleaseOutcome::Unknown;
    };
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let next = Instant::now() + backoff.next_pause();
        if next >= until {
            return ReleaseOutcome::Unknown;
        }
        sleep_until(next).await;
        let Ok(Ok(_turn)) = timeout_at(until, shared.repeats.turns.acquire()).await else {
            return ReleaseOutcome::Unknown;
        };
        match once(shared, claim, ReleaseMode::OwnerChecked).await {
            Some(Released::Released) => return ReleaseOutcome::Released,
            // An earlier try may have freed it before its answer was lost.
            Some(Released::NotTheOwner) => return ReleaseOutcome::Unknown,
            None => {}
        }
    }
}

/// `None` when it was not answered.
async fn once(shared: &Shared, claim: &Claim, mode: ReleaseMode) -> Option<Released> {
    let answer = timeout(claim.overtime(), shared.system.release(claim, mode)).await;
    match answer.unwrap_or_else(|_| Err(LockError::no_answer(claim))) {
        Ok(released) => Some(released),
        Err(error) => {
            tracing::debug!(
                lock.system = %shared.system.name(),
                lock.owner = %claim.owner,
                %error,
                "a release was not answered"
            );
            None
        }
    }
}
