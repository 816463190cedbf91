//! What is held: the keys of one acquisition, until they are given back or lost.
//!
//! It promises that the lock is given back promptly, however its holder ends: by [`Held::release`], by an error, by
//! a panic, inside a runtime or outside. It does not promise that the lock is still held: it says until when it
//! surely is ([`Held::deadline`]) and when it no longer is ([`Held::check`], [`Held::lost`]). Both are a courtesy,
//! since a holder can be stopped between its last look and its next write; then only a token checked there helps.

use std::{fmt, sync::Arc};

use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::{
    claim::{Claim, Grant, Owner, Token},
    error::{LockError, Lost},
    gauge::Counted,
    key::Key,
    lease::Lease,
    many::Keys,
    releasing::{self, Releasing},
    system::ReleaseMode,
};

/// A lock that is held. Dropping it gives it back.
#[must_use = "a lock that is not kept is given back at once"]
pub struct Held {
    lease: Arc<Lease>,
    grant: Grant,
    mode: ReleaseMode,
    /// Ended before anything is given back.
    renewal: Option<AbortOnDropHandle<()>>,
    /// Whether dropping it has nothing left to do.
    ended: bool,
    _counted: Counted,
}

impl Held {
    pub(super) fn new(
        lease: Arc<Lease>,
        grant: Grant,
        mode: ReleaseMode,
        renewal: Option<AbortOnDropHandle<()>>,
    ) -> Self {
        let counted = lease.shared.held.enter();
        Self {
            lease,
            grant,
            mode,
            renewal,
            ended: false,
            _counted: counted,
        }
    }

    /// What was granted: each key with its token.
    pub fn tokens(&self) -> &Grant {
        &self.grant
    }

    /// The token of a key; `None` when it is not held or the system has no tokens.
    pub fn token(&self, key: &Key) -> Option<Token> {
        self.grant.token(key)
    }

    /// The keys, in order.
    pub fn keys(&self) -> &Keys {
        &self.lease.claim.keys
    }

    /// The acquisition that holds them.
    pub fn owner(&self) -> Owner {
        self.lease.claim.owner
    }

    /// Requests to the lock system so far. (See [`Trips`](super::Trips) for what counts.)
    pub fn trips(&self) -> u32 {
        self.lease.trips.get()
    }

    /// Until when the lock is surely held, unless it is renewed; `None` when it never expires.
    pub fn deadline(&self) -> Option<Instant> {
        self.lease.deadline()
    }

    /// Whether the lock is still held as far as this process knows. No request.
    ///
    /// # Errors
    /// [`Lost`] once the deadline has passed or the lock system has said that it is not the owner's. It stays so.
    pub fn check(&self) -> Result<(), Lost> {
        self.lease.check()
    }

    /// Ends when the lock is lost. The future does not borrow, so that work can be raced against it.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let lease = self.lease.clone();
        async move { lease.lost().await }
    }

    /// Asks the lock system whether the lock is still the owner's, in a new request; a lease is renewed by it.
    /// `false`, without a request, when it is known to be lost.
    ///
    /// # Errors
    /// [`LockError::Unavailable`]: not known.
    pub async fn confirm(&self) -> Result<bool, LockError> {
        Ok(self.lease.renew().await?.is_some())
    }

    /// Renewal stands still until [`thaw`](Self::thaw), as when the whole process sleeps.
    pub fn freeze(&self) {
        self.lease.freeze(true);
    }

    /// Renewal goes on, if the lease is not lost meanwhile.
    pub fn thaw(&self) {
        self.lease.freeze(false);
    }

    /// Gives the lock back in the background, also when it is known to be lost: owner-checked this changes nothing
    /// then, and blind it frees whoever's lock it is, which is what a blind release does.
    pub fn release(mut self) -> Releasing {
        self.give_back()
    }

    /// Leaves the lock to run out: it is no longer renewed and not given back. For a holder that cannot know
    /// whether its work is done, such as one whose commit was not answered. A lock that never expires is given back,
    /// or it would stay for ever.
    pub fn abandon(mut self) {
        let Some(deadline) = self.deadline() else {
            return;
        };
        self.ended = true;
        drop(self.renewal.take());
        let lease = self.lease.clone();
        self.lease.shared.runtime.spawn(async move {
            sleep_until(deadline).await;
            releasing::is_over(&lease.shared, &lease.claim);
        });
    }

    fn give_back(&mut self) -> Releasing {
        self.ended = true;
        drop(self.renewal.take());
        let Lease { shared, claim, .. } = &*self.lease;
        let until = self.deadline().unwrap_or_else(Instant::now);
        releasing::start(shared, Claim::clone(claim), self.mode, until)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody waits for it; the task goes on by itself.
            drop(self.give_back());
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("owner", &self.owner())
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}
