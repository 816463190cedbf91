//! Giving a lock back, in the background.
//!
//! Nobody has to wait for it: it runs in a task of its own, with retries until the lease would have run out anyway.
//! It does not promise that the lock system hears of it; then the lease runs out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    backoff::Backoff,
    claim::Claim,
    error::LockError,
    lease,
    service::Shared,
    system::{ReleaseMode, Released},
};

/// How long one try may take, so that a stuck connection leaves time for another.
const TRY: Duration = Duration::from_secs(1);

/// The first and the longest pause between two tries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

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
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    let mut first = true;
    loop {
        match once(&shared, &claim, mode).await {
            Ok(Released::Released) => return ReleaseOutcome::Released,
            Ok(Released::NotTheOwner) if first => return ReleaseOutcome::NotTheOwner,
            // The first try may have freed it before its answer was lost.
            Ok(Released::NotTheOwner) => return ReleaseOutcome::Unknown,
            Err(error) => tracing::debug!(
                lock.system = %shared.system.name(),
                lock.owner = %claim.owner,
                %error,
                "a release was not answered"
            ),
        }
        // A blind release that is repeated could free a lock that was granted in between, to anybody.
        if mode == ReleaseMode::Blind {
            return ReleaseOutcome::Unknown;
        }
        first = false;
        let pause = backoff.next_pause();
        if Instant::now() + pause >= until {
            return ReleaseOutcome::Unknown;
        }
        sleep(pause).await;
    }
}

async fn once(shared: &Shared, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
    timeout(claim.overtime(), shared.system.release(claim, mode))
        .await
        .unwrap_or_else(|_| Err(LockError::no_answer(claim)))
}
