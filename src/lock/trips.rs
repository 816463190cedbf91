//! How many requests to the lock system one acquisition took.
//!
//! Asks, renewals and confirmations count. A release does not: nobody waits for it, so a number that held it would
//! depend on when it is read.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// A shared counter. The caller keeps a clone, so that it can be read after a failure, too.
#[derive(Debug, Clone, Default)]
pub struct Trips(Arc<AtomicU32>);

impl Trips {
    /// The requests so far.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
