//! Keeps a lease alive for as long as it is held.
//!
//! The task belongs to `Held` and is aborted with it, before the release is sent. A renewal that was on its way by
//! then does no harm, since a renewal never creates a lease.
//!
//! An answer that does not come is neither "kept" nor "lost": it is asked for again soon. After "lost" nothing is
//! asked any more.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{lease::Lease, releasing};

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

/// When a lease is renewed next that counts from `since`. That may be long ago, as when many claims share one lease that
/// was last kept alive before its lock system changed its leader: then there is less than a whole lease time left.
fn next_after(since: Instant, now: Instant, time: Duration) -> Instant {
    (since + time / RENEWALS_PER_LEASE).max(now + pause(time))
}

fn pause(time: Duration) -> Duration {
    (time / TRIES_PER_LEASE).min(LONGEST_PAUSE)
}

async fn renew(lease: &Lease, since: Instant, time: Duration) {
    let mut next = since + time / RENEWALS_PER_LEASE;
    while next < since + LONGEST_HOLD {
        sleep_until(next).await;
        lease.thawed().await;
        next = match lease.renew().await {
            Ok(Some(since)) => next_after(since, Instant::now(), time),
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(lock.owner = %lease.claim.owner, %error, "a renewal was not answered");
                Instant::now() + pause(time)
            }
        };
    }
    tracing::warn!(
        lock.owner = %lease.claim.owner,
        "a lock was held for {} s and is renewed no more",
        LONGEST_HOLD.as_secs()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_renewed_is_renewed_again_after_a_third_of_what_it_got() {
        let (began, time) = (Instant::now(), Duration::from_secs(3));
        let at = |ms| began + Duration::from_millis(ms);
        assert_eq!(next_after(at(1000), at(1010), time), at(2000));
        // Answered at 1900 ms that it is kept since the beginning: it ends at 3000 ms, and not a third later.
        assert_eq!(next_after(began, at(1900), time), at(2050));
    }
}
