//! Counts what is there now: each entry is counted until it is dropped, also in a panic.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Debug, Clone, Default)]
pub(super) struct Gauge(Arc<AtomicUsize>);

/// One entry of a gauge.
#[derive(Debug)]
pub(super) struct Counted(Gauge);

impl Gauge {
    pub(super) fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
