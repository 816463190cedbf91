//! From a wish to what is held: stand in line, listen, ask, wait, ask again.
//!
//! One deadline covers all of it. A request is never cancelled half-way, since it may have been applied: giving up
//! happens between two requests, and what a late or failed request may have got is given back in the background.
//!
//! It promises no order between processes; that is the lock system's business.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    backoff::Backoff,
    claim::{Claim, Grant, Owner},
    error::{LockError, Lost},
    held::Held,
    lease::Lease,
    queue::Place,
    releasing, renewal,
    service::{Shared, Wish},
    system::Answer,
    wakeups::Listener,
};

/// The longest pause before a waiter asks again by itself. A lease that runs out wakes nobody, and a wake-up can be
/// lost with the connection that carries it.
const POLL_CAP: Duration = Duration::from_millis(250);

/// The first ceiling of the back-off, and the shortest wait for a lease to run out.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// How much longer than the wait limit a request may take: the last one is sent when the limit is reached.
const GRACE: Duration = Duration::from_secs(1);

/// The longest time for one request.
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// How long who gives up waits until its place in the lock system's queue is given back. Usually it is by then, and who
/// asks next, knowing that this one gave up, does not find it in front.
const LEAVING: Duration = Duration::from_millis(500);

/// How a waiter learns that a lock may be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// It is woken by the lock system, where this can be; else it backs off.
    #[default]
    Notify,
    /// It asks again after pauses that grow from 2 ms to 250 ms, with full jitter.
    Backoff,
}

/// One acquisition under way.
struct Acquisition {
    shared: Arc<Shared>,
    wish: Wish,
    owner: Owner,
    began: Instant,
    /// When the wait limit is reached.
    until: Instant,
    /// Nobody waits for the result any more.
    stop: CancellationToken,
}

/// Acquires what is wished for. Runs in a task of its own; `stop` is how its caller leaves.
pub(super) async fn acquire(
    shared: Arc<Shared>,
    wish: Wish,
    stop: CancellationToken,
) -> Result<Held, LockError> {
    let _counted = shared.waiting.enter();
    let began = Instant::now();
    let acquisition = Acquisition {
        until: began + wish.wait,
        owner: Owner::random(),
        shared,
        wish,
        began,
        stop,
    };
    acquisition.run().await
}

impl Acquisition {
    async fn run(&self) -> Result<Held, LockError> {
        let _place = self.stand_in_line().await?;
        let mut pace = self.pace();
        loop {
            let sent = Instant::now();
            let claim = self.claim(sent);
            let retry_in = match self.ask(&claim).await? {
                Answer::Granted(grant) => return self.hold(claim, grant, sent),
                Answer::Refused { retry_in, .. } => retry_in,
            };
            if let Err(error) = self.pause(&mut pace, retry_in).await {
                self.give_up(claim).await;
                return Err(error);
            }
        }
    }

    /// Who does not want to wait asks at once, past those who do.
    async fn stand_in_line(&self) -> Result<Option<Place>, LockError> {
        if self.wish.wait.is_zero() {
            return Ok(None);
        }
        tokio::select! {
            biased;
            place = self.shared.queue.enter(&self.wish.keys) => place.map(Some),
            () = self.stop.cancelled() => Err(LockError::Cancelled),
            () = sleep_until(self.until) => Err(self.timed_out()),
        }
    }

    /// Listens before the first ask, or a release between the ask and the wait would be missed.
    fn pace(&self) -> Pace {
        let hub = match self.wish.waiting {
            Waiting::Notify => self.shared.system.wakeups(),
            Waiting::Backoff => None,
        };
        match hub {
            Some(hub) => Pace::Woken(hub.listen(&self.wish.keys)),
            None => Pace::Backoff(Backoff::new(FIRST_PAUSE, POLL_CAP)),
        }
    }

    fn claim(&self, now: Instant) -> Claim {
        let rest = self.until.saturating_duration_since(now);
        Claim {
            owner: self.owner,
            keys: self.wish.keys.clone(),
            ttl: self.lease_time().unwrap_or(self.wish.ttl),
            alone: !self.wish.renew || self.wish.may_freeze,
            waits: self.wish.waiting == Waiting::Notify && !rest.is_zero(),
            patience: (rest + GRACE).min(MOST_PATIENCE),
        }
    }

    /// `None` for a lock that never expires.
    fn lease_time(&self) -> Option<Duration> {
        self.shared.system.lease_time(self.wish.ttl)
    }

    /// Asks once. If the answer fails or does not come in time the keys may have been granted all the same, so they
    /// are given back: after the request has ended, or the release could overtake it.
    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        self.wish.trips.count();
        let mut asking = Box::pin({
            let (system, claim) = (self.shared.system.clone(), claim.clone());
            async move { system.ask(&claim).await }
        });
        match timeout(claim.overtime(), &mut asking).await {
            Ok(Err(error)) if may_have_been_sent(&error) => {
                releasing::withdraw(&self.shared, claim.clone());
                Err(error)
            }
            Ok(answer) => answer,
            Err(_) => {
                let (shared, claim) = (self.shared.clone(), claim.clone());
                let error = LockError::no_answer(&claim);
                self.shared.spawn(async move {
                    if asking.await.as_ref().err().is_none_or(may_have_been_sent) {
                        releasing::withdraw(&shared, claim);
                    }
                });
                Err(error)
            }
        }
    }

    /// Waits until it is worth asking again.
    async fn pause(&self, pace: &mut Pace, retry_in: Option<Duration>) -> Result<(), LockError> {
        if self.until <= Instant::now() {
            return Err(self.timed_out());
        }
        tokio::select! {
            () = self.stop.cancelled() => Err(LockError::Cancelled),
            () = sleep_until(self.until) => Ok(()),
            () = pace.next(retry_in) => Ok(()),
        }
    }

    /// Turns a grant into what is held, unless it took so long that it is over already.
    fn hold(&self, claim: Claim, grant: Grant, sent: Instant) -> Result<Held, LockError> {
        let time = self.lease_time();
        let (shared, trips) = (self.shared.clone(), self.wish.trips.clone());
        let since = grant.since(sent);
        let lease = Arc::new(Lease::new(shared, claim, trips, time, since));
        if lease.check().is_err() {
            releasing::withdraw(&self.shared, lease.claim.clone());
            return Err(LockError::Lost(Lost));
        }
        let renewal = time
            .filter(|_| self.wish.renew)
            .map(|time| renewal::keep(lease.clone(), since, time))
            .map(|task| AbortOnDropHandle::new(self.shared.runtime.spawn(task)));
        Ok(Held::new(lease, grant, self.wish.release, renewal))
    }

    /// Leaves the lock system's queue, and waits for it: whoever tries next must not find a place in front that
    /// nobody waits in.
    async fn give_up(&self, claim: Claim) {
        if self.shared.system.queues() {
            let _ = timeout(LEAVING, releasing::withdraw(&self.shared, claim)).await;
        }
    }

    fn timed_out(&self) -> LockError {
        LockError::Timeout {
            waited: self.began.elapsed(),
        }
    }
}

/// Else there is nothing to give back.
fn may_have_been_sent(error: &LockError) -> bool {
    !matches!(error, LockError::TooManyWaiters { .. })
}

/// When a waiter asks again.
enum Pace {
    Woken(Listener),
    Backoff(Backoff),
}

impl Pace {
    /// `retry_in` is when the other's lease runs out.
    async fn next(&mut self, retry_in: Option<Duration>) {
        match self {
            Self::Backoff(backoff) => sleep(backoff.next_pause()).await,
            Self::Woken(listener) => {
                let longest = retry_in.unwrap_or(POLL_CAP).clamp(FIRST_PAUSE, POLL_CAP);
                // Woken or not, the next thing is to ask.
                let _ = timeout(longest, listener.woken()).await;
            }
        }
    }
}
