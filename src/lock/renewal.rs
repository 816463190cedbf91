//! Keeps a lease alive for as long as it is held.
//!
//! The task belongs to `Held` and is aborted with it, before the release is sent. A renewal that was on its way by
//! then does no harm, since a renewal never creates a lease.
//!
//! An answer that does not come is neither "kept" nor "lost": it is asked for again soon. After "lost" nothing is
//! asked any more.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{lease::Lease, releasing, system::Renewal};

/// How long a lease is renewed at most. A holder that forgot its lock must not keep it for ever.
pub const LONGEST_HOLD: Duration = Duration::from_secs(600);

/// Renewals per lease time: after two that failed there is still time for a third.
const RENEWALS_PER_LEASE: u32 = 3;

/// Tries per lease time while the lock system does not answer.
const TRIES_PER_LEASE: u32 = 20;

/// The longest pause between such tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Renews a lease that counts from `since` and lasts for `time`, until it is lost or held too long; and then waits for
/// its end.
pub(super) async fn keep(lease: Arc<Lease>, since: Instant, time: Duration) {
    renew(&lease, since, time).await;
    lease.lost().await;
    releasing::is_over(&lease.shared, &lease.claim);
}

async fn renew(lease: &Lease, since: Instant, time: Duration) {
    let mut next = since + time / RENEWALS_PER_LEASE;
    while next < since + LONGEST_HOLD {
        sleep_until(next).await;
        lease.thawed().await;
        let sent = Instant::now();
        next = match lease.renew().await {
            Ok(Renewal::Kept | Renewal::KeptSince(_)) => sent + time / RENEWALS_PER_LEASE,
            Ok(Renewal::Lost) => return,
            Err(error) => {
                tracing::debug!(lock.owner = %lease.claim.owner, %error, "a renewal was not answered");
                Instant::now() + (time / TRIES_PER_LEASE).min(LONGEST_PAUSE)
            }
        };
    }
    tracing::warn!(
        lock.owner = %lease.claim.owner,
        "a lock was held for {} s and is renewed no more",
        LONGEST_HOLD.as_secs()
    );
}
