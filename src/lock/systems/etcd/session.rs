//! Leases at the server, and what keeps them alive.
//!
//! The claims that are renewed share one lease for each lease time, so that taking a lock is one request. A task keeps
//! it alive while it is used and for [`IDLE`] more, and then gives it back. A claim that stands alone has a lease of
//! its own, which only its own renewals keep alive.
//!
//! A lease counts from before the request was sent that made it or that last kept it alive, so this process thinks it
//! over before the server does. Then it is over for good: it is kept alive no more, since its holders were told.
//!
//! An answer that does not come, or a stream that was closed, is neither "alive" nor "over".
//! (etcd#7357, #9604, #15922.)

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::link::{Failure, Link};
use crate::lock::{
    gauge::{Counted, Gauge},
    unpoisoned,
};

/// How long a shared lease is kept for the next claim.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// Keep-alives per lease time. More than renewals, since a renewal is worth no more than the last keep-alive.
const KEEP_ALIVES_PER_LEASE: u32 = 6;

/// The longest pause between two keep-alives, after which an idle lease is noticed, too.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The pause after a keep-alive that was not answered.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// How long a keep-alive may take at most.
const LONGEST_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// How long giving a lease back may take. If it does not succeed, the lease ends by itself.
const REVOKING: Duration = Duration::from_secs(1);

/// One lease at the server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) lease: i64,
    pub(super) ttl: Duration,
    /// Whether it belongs to one claim.
    pub(super) alone: bool,
    users: Gauge,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// From when it counts.
    since: Instant,
    /// When a claim last began to use it.
    used: Instant,
    /// Never becomes false again.
    over: bool,
    /// The version of its barrier: requests that know an older one are too late.
    barrier: i64,
}

impl State {
    fn is_over(&self, ttl: Duration) -> bool {
        self.over || self.since + ttl <= Instant::now()
    }
}

impl Session {
    /// Makes a lease of its own for one claim.
    pub(super) async fn alone(
        link: &Link,
        ttl: Duration,
        until: Instant,
    ) -> Result<Arc<Self>, Failure> {
        Self::begin(link, ttl, true, until).await
    }

    async fn begin(
        link: &Link,
        ttl: Duration,
        alone: bool,
        until: Instant,
    ) -> Result<Arc<Self>, Failure> {
        let since = Instant::now();
        let seconds = seconds(ttl);
        let lease = link.grant(seconds, until).await?;
        // A server grants more where its minimum is higher. That does no harm: nobody counts on the rest.
        if lease.ttl() < seconds {
            let granted = lease.ttl();
            return Err(Failure::Answer(format!(
                "a lease of {granted} s was granted instead of {seconds} s"
            )));
        }
        Ok(Arc::new(Self::new(lease.id(), ttl, alone, since)))
    }

    pub(super) fn new(lease: i64, ttl: Duration, alone: bool, since: Instant) -> Self {
        Self {
            lease,
            ttl,
            alone,
            users: Gauge::default(),
            state: Mutex::new(State {
                since,
                used: since,
                over: false,
                barrier: 0,
            }),
        }
    }

    /// From when the lease counts.
    pub(super) fn since(&self) -> Instant {
        unpoisoned::lock(&self.state).since
    }

    /// Whether the lease is known to be over.
    pub(super) fn is_over(&self) -> bool {
        unpoisoned::lock(&self.state).is_over(self.ttl)
    }

    /// Whether a claim should begin under it: most of its time must be left.
    pub(super) fn is_fresh(&self) -> bool {
        let state = unpoisoned::lock(&self.state);
        !state.is_over(self.ttl / 2)
    }

    /// Counts a claim that uses it, until the result is dropped; `None` when it is over.
    pub(super) fn enter(&self) -> Option<Counted> {
        let mut state = unpoisoned::lock(&self.state);
        if state.is_over(self.ttl) {
            return None;
        }
        state.used = Instant::now();
        // Still locked, or it could end as an idle one in between.
        Some(self.users.enter())
    }

    /// Ends it when nobody has used it for a while, and says whether it is over.
    fn end_if_idle(&self) -> bool {
        let mut state = unpoisoned::lock(&self.state);
        state.over |= self.users.get() == 0 && state.used + IDLE <= Instant::now();
        state.is_over(self.ttl)
    }

    /// The server no longer knows the lease, or shall soon.
    pub(super) fn end(&self) {
        unpoisoned::lock(&self.state).over = true;
    }

    pub(super) fn barrier(&self) -> i64 {
        unpoisoned::lock(&self.state).barrier
    }

    pub(super) fn raise_barrier(&self, version: i64) {
        let mut state = unpoisoned::lock(&self.state);
        state.barrier = state.barrier.max(version);
    }

    /// Keeps the lease alive, once.
    pub(super) async fn keep_alive(&self, link: &Link, until: Instant) -> Result<(), Failure> {
        if self.is_over() {
            return Err(Failure::NoLease);
        }
        let sent = Instant::now();
        let answer = link.keep_alive(self.lease, until).await;
        let mut state = unpoisoned::lock(&self.state);
        if matches!(answer, Err(Failure::NoLease)) {
            state.over = true;
        }
        answer?;
        // An answer after the end does not undo it: the holders were told.
        if state.is_over(self.ttl) {
            state.over = true;
            return Err(Failure::NoLease);
        }
        state.since = state.since.max(sent);
        Ok(())
    }

    /// Gives the lease back, with all keys that hang on it.
    pub(super) async fn revoke(&self, link: &Link) {
        self.end();
        if let Err(failure) = link.revoke(self.lease, Instant::now() + REVOKING).await {
            tracing::debug!(lease = self.lease, ?failure, "a lease ends by itself");
        }
    }

    /// Keeps a shared lease alive while it is used.
    async fn keep(self: Arc<Self>, link: Arc<Link>, stop: CancellationToken) {
        let pause = (self.ttl / KEEP_ALIVES_PER_LEASE).min(LONGEST_PAUSE);
        let mut next = self.since() + pause;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                () = stop.cancelled() => break,
            }
            if self.end_if_idle() {
                break;
            }
            let sent = Instant::now();
            // Half of what is left, so that one that hangs leaves time for another.
            let left = (self.since() + self.ttl).saturating_duration_since(sent);
            let limit = (left / 2).min(LONGEST_KEEP_ALIVE);
            next = match self.keep_alive(&link, sent + limit).await {
                Ok(()) => sent + pause,
                Err(Failure::NoLease) => break,
                Err(failure) => {
                    tracing::debug!(
                        lease = self.lease,
                        ?failure,
                        "a keep-alive was not answered"
                    );
                    Instant::now() + SHORT_PAUSE
                }
            };
        }
        self.revoke(&link).await;
    }
}

/// The shared leases of this process.
#[derive(Debug)]
pub(super) struct Sessions {
    link: Arc<Link>,
    /// By lease time. Locked while one is made, so that one task makes it for all.
    shared: tokio::sync::Mutex<HashMap<Duration, Arc<Session>>>,
    /// Ends with this.
    stop: CancellationToken,
}

impl Sessions {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            shared: tokio::sync::Mutex::default(),
            stop: CancellationToken::new(),
        }
    }

    /// The shared lease of this time; a new one when there is none that is fresh.
    pub(super) async fn shared(
        &self,
        ttl: Duration,
        until: Instant,
    ) -> Result<Arc<Session>, Failure> {
        let mut shared = timeout_at(until, self.shared.lock())
            .await
            .map_err(|_| Failure::Silence)?;
        if let Some(session) = shared.get(&ttl).filter(|session| session.is_fresh()) {
            return Ok(session.clone());
        }
        let session = Session::begin(&self.link, ttl, false, until).await?;
        let keep = session.clone().keep(self.link.clone(), self.stop.clone());
        tokio::spawn(keep);
        shared.retain(|_, session| !session.is_over());
        shared.insert(ttl, session.clone());
        Ok(session)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The shortest lease that a server with its default settings grants: one and a half times its election timeout of a
/// second, rounded up. (etcd, `server/etcdserver/server.go`, `minTTL`.)
const SHORTEST: Duration = Duration::from_secs(2);

/// Whole seconds, which is what etcd counts in.
pub(super) fn lease_time(wanted: Duration) -> Duration {
    let whole = Duration::from_secs(wanted.as_secs());
    let up = if whole < wanted { 1 } else { 0 };
    (whole + Duration::from_secs(up)).max(SHORTEST)
}

fn seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_whole_seconds_and_at_least_two() {
        let ms = Duration::from_millis;
        for (wanted, raised) in [(10, 2000), (2000, 2000), (2001, 3000), (60_000, 60_000)] {
            assert_eq!(lease_time(ms(wanted)), ms(raised));
        }
    }

    fn shared_since(since: Instant) -> Session {
        Session::new(1, Duration::from_secs(60), false, since)
    }

    #[test]
    fn nobody_enters_a_lease_that_ended_as_an_idle_one() {
        let session = shared_since(Instant::now() - IDLE);
        assert!(session.is_fresh() && session.end_if_idle());
        assert!(session.enter().is_none());
    }

    #[test]
    fn a_lease_that_is_used_or_was_a_moment_ago_is_not_idle() {
        let session = shared_since(Instant::now() - IDLE);
        let user = session.enter();
        assert!(user.is_some() && !session.end_if_idle());
        drop(user);
        assert!(!session.end_if_idle());
        assert!(!shared_since(Instant::now()).end_if_idle());
    }
}
