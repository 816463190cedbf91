//! A grant and what is known of it: until when it surely stands, and whether it is lost.
//!
//! The deadline is on the monotonic clock and counts from before the request was sent, less a margin for clocks
//! that run at different speeds: the lock system started to count later, so it ends later. Where the lock system says
//! that the lease is older than the request, it counts from what the system said. Lost is for good, once the deadline
//! has passed or the lock system has said so.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::{
    claim::Claim,
    error::{LockError, Lost},
    service::Shared,
    system::Renewal,
    trips::Trips,
};

/// How long a renewal may take at most, also when the lease has more time left than this.
const LONGEST_RENEWAL: Duration = Duration::from_secs(5);

/// A fixed part of the margin, for timers that fire on the next millisecond. (Redis documentation, "Distributed
/// locks", and the Redlock clients that follow it: 1 % and 2 ms.)
const TIMER_MARGIN: Duration = Duration::from_millis(2);

/// Until when a lease surely stands that counts from `since` and lasts for `time`.
pub(super) fn deadline(since: Instant, time: Duration) -> Instant {
    let margin = time / 100 + TIMER_MARGIN;
    since + time.saturating_sub(margin)
}

/// What `Held` and its renewal share.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) shared: Arc<Shared>,
    pub(super) claim: Claim,
    pub(super) trips: Trips,
    /// How long each renewal makes it last; `None` for a lock that never expires.
    time: Option<Duration>,
    standing: watch::Sender<Standing>,
    frozen: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    /// `None` when it never expires.
    deadline: Option<Instant>,
    /// Never becomes false again.
    lost: bool,
}

impl Standing {
    fn is_lost(&self) -> bool {
        self.lost
            || self
                .deadline
                .is_some_and(|deadline| deadline <= Instant::now())
    }
}

impl Lease {
    /// A lease that counts from `since`.
    pub(super) fn new(
        shared: Arc<Shared>,
        claim: Claim,
        trips: Trips,
        time: Option<Duration>,
        since: Instant,
    ) -> Self {
        let standing = Standing {
            deadline: time.map(|time| deadline(since, time)),
            lost: false,
        };
        Self {
            shared,
            claim,
            trips,
            time,
            standing: watch::Sender::new(standing),
            frozen: watch::Sender::new(false),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.standing.borrow().deadline
    }

    pub(super) fn check(&self) -> Result<(), Lost> {
        if self.standing.borrow().is_lost() {
            return Err(Lost);
        }
        Ok(())
    }

    /// Ends when the lease is lost: by its own timer, even if a request hangs, or because the lock system said so.
    pub(super) async fn lost(&self) {
        let mut standing = self.standing.subscribe();
        loop {
            let now = *standing.borrow_and_update();
            if now.is_lost() {
                return;
            }
            tokio::select! {
                // The sender lives in `self`, so this never fails.
                _ = standing.changed() => {}
                () = sleep_until_some(now.deadline) => {}
            }
        }
    }

    /// Asks the lock system for more time, and tells from when the lease counts now; none when it is lost. A lease that is
    /// lost already is not asked for.
    pub(super) async fn renew(&self) -> Result<Option<Instant>, LockError> {
        if self.check().is_err() {
            return Ok(None);
        }
        let sent = Instant::now();
        let claim = Claim {
            patience: self.patience(sent),
            ..self.claim.clone()
        };
        self.trips.count();
        let answer = timeout(claim.overtime(), self.shared.system.renew(&claim))
            .await
            .unwrap_or_else(|_| Err(LockError::no_answer(&claim)))?;
        Ok(self.note(answer, sent))
    }

    /// Half of what is left, so that a renewal that hangs leaves time for another.
    fn patience(&self, now: Instant) -> Duration {
        let Some(deadline) = self.deadline() else {
            return LONGEST_RENEWAL;
        };
        (deadline.saturating_duration_since(now) / 2).min(LONGEST_RENEWAL)
    }

    /// Takes note of an answer. One that comes after the deadline is too late even if it says "kept": somebody may
    /// have seen the loss and acted on it.
    fn note(&self, answer: Renewal, sent: Instant) -> Option<Instant> {
        let since = match answer {
            Renewal::Kept => Some(sent),
            Renewal::KeptSince(since) => Some(since.min(sent)),
            Renewal::Lost => None,
        };
        self.standing.send_modify(|standing| {
            standing.lost = standing.is_lost() || since.is_none();
            if let Some(since) = since.filter(|_| !standing.lost) {
                standing.deadline = self.time.map(|time| deadline(since, time));
            }
        });
        since.filter(|_| self.check().is_ok())
    }

    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Waits while the lease is frozen.
    pub(super) async fn thawed(&self) {
        // The sender lives in `self`, so this never fails.
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }
}

/// Sleeps until then, or for ever.
async fn sleep_until_some(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{Key, LockService, Owner, systems::Mutex};

    #[test]
    fn the_deadline_counts_from_the_request_less_1_percent_and_2_ms() {
        let sent = Instant::now();
        let deadline = deadline(sent, Duration::from_millis(1000));
        assert_eq!(deadline - sent, Duration::from_millis(988));
    }

    fn lease(time: Duration) -> Lease {
        let service = LockService::new(Arc::new(Mutex::default()));
        let claim = Claim {
            owner: Owner::random(),
            keys: Key::parse("a").unwrap().into(),
            ttl: time,
            alone: false,
            waits: false,
            patience: time,
        };
        let trips = Trips::default();
        Lease::new(service.shared, claim, trips, Some(time), Instant::now())
    }

    #[tokio::test]
    async fn a_renewal_moves_the_deadline() {
        let lease = lease(Duration::from_secs(60));
        let before = lease.deadline();
        let later = Instant::now() + Duration::from_secs(1);
        assert_eq!(lease.note(Renewal::Kept, later), Some(later));
        assert!(lease.deadline() > before);
    }

    /// Many claims share one lease, and this one was last kept alive before the renewal was sent.
    #[tokio::test]
    async fn a_renewal_under_an_older_lease_counts_from_that() {
        let lease = lease(Duration::from_secs(60));
        let sent = Instant::now() + Duration::from_secs(10);
        let since = sent - Duration::from_secs(3);
        assert_eq!(lease.note(Renewal::KeptSince(since), sent), Some(since));
        assert_eq!(
            lease.deadline(),
            Some(deadline(since, Duration::from_secs(60)))
        );
        // A lease that would count from later than the renewal was sent.
        lease.note(Renewal::KeptSince(sent), since);
        assert_eq!(
            lease.deadline(),
            Some(deadline(since, Duration::from_secs(60)))
        );
    }

    /// As after a pause of the whole process while the answer was on its way.
    #[tokio::test]
    async fn an_answer_after_the_deadline_does_not_undo_the_loss() {
        let lease = lease(Duration::ZERO);
        assert_eq!(lease.check(), Err(Lost));
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(lease.note(Renewal::Kept, later), None);
        assert_eq!(lease.check(), Err(Lost));
    }
}
