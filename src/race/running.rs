//! Which rooms this replica runs a race in: two races in one room would only disturb each other.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::room::RoomName;

/// The rooms with a race under way.
#[derive(Debug, Default, Clone)]
pub struct Running {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rooms: Mutex<HashSet<RoomName>>,
    ended: Notify,
}

impl Running {
    /// Begins a race, until the value is dropped; none if one is under way in the room.
    pub fn begin(&self, room: &RoomName) -> Option<UnderWay> {
        let mut rooms = self
            .inner
            .rooms
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        rooms.insert(room.clone()).then(|| UnderWay {
            running: self.clone(),
            room: room.clone(),
        })
    }

    /// Whether a race is under way in the room.
    pub fn is_under_way(&self, room: &RoomName) -> bool {
        let rooms = self
            .inner
            .rooms
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        rooms.contains(room)
    }

    /// Returns when no race is under way in the room.
    pub async fn ended(&self, room: &RoomName) {
        loop {
            let ended = self.inner.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if !self.is_under_way(room) {
                return;
            }
            ended.await;
        }
    }
}

/// A race under way.
#[derive(Debug)]
pub struct UnderWay {
    running: Running,
    room: RoomName,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.running
            .inner
            .rooms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.room);
        self.running.inner.ended.notify_waiters();
    }
}
