//! Leases of ended attempts that may still stand at the lock system, counted by room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The counts of this replica.
#[derive(Debug, Default, Clone)]
pub struct LeasesLeft {
    by_room: Arc<Mutex<HashMap<String, u64>>>,
}

impl LeasesLeft {
    /// Counts `leases` of a room until the value is dropped.
    pub fn count(&self, room: &str, leases: u64) -> Left {
        let mut by_room = self.by_room.lock().unwrap_or_else(PoisonError::into_inner);
        *by_room.entry(room.to_owned()).or_default() += leases;
        Left {
            counts: self.clone(),
            room: room.to_owned(),
            leases,
        }
    }

    /// How many are left in all rooms.
    pub fn total(&self) -> u64 {
        let by_room = self.by_room.lock().unwrap_or_else(PoisonError::into_inner);
        by_room.values().sum()
    }

    /// How many are left in a room.
    pub fn of(&self, room: &str) -> u64 {
        let by_room = self.by_room.lock().unwrap_or_else(PoisonError::into_inner);
        by_room.get(room).copied().unwrap_or(0)
    }
}

/// Some leases that may still stand.
#[derive(Debug)]
pub struct Left {
    counts: LeasesLeft,
    room: String,
    leases: u64,
}

impl Drop for Left {
    fn drop(&mut self) {
        let mut by_room = self
            .counts
            .by_room
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(count) = by_room.get_mut(&self.room) else {
            return;
        };
        *count = count.saturating_sub(self.leases);
        if *count == 0 {
            by_room.remove(&self.room);
        }
    }
}
