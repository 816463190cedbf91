//! A room that somebody watches on this replica.
//!
//! Promises: however many watch, the work for a room is done once, from the first reader until [`LINGER`] after the
//! last one. Nothing is done for a room that nobody watches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};

use super::board::Board;
use super::{changes, steps};
use crate::app::App;
use crate::room::RoomName;

/// How long a room is watched on after its last reader left: a page that is read anew, or whose connection broke, comes
/// back within this and finds its place.
const LINGER: Duration = Duration::from_secs(5);

/// A room that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) room: RoomName,
    pub(super) board: Arc<Board>,
    readers: watch::Sender<usize>,
}

/// The place of one reader, until the value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) watched: Arc<Watched>,
    _permit: OwnedSemaphorePermit,
}

impl Watched {
    pub(super) fn new(room: RoomName) -> Self {
        Self {
            room,
            board: Arc::new(Board::new()),
            readers: watch::Sender::new(0),
        }
    }

    /// One more reader.
    pub(super) fn take_place(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        self.readers.send_modify(|readers| *readers += 1);
        Place {
            watched: Arc::clone(self),
            _permit: permit,
        }
    }

    /// Whether nobody reads just now.
    pub(super) fn is_left_alone(&self) -> bool {
        *self.readers.borrow() == 0
    }

    /// Returns when nobody has read for a while.
    async fn left_alone(&self) {
        let mut readers = self.readers.subscribe();
        loop {
            // The sender lives in `self`, so these never fail.
            let _ = readers.wait_for(|&readers| readers == 0).await;
            let back = readers.wait_for(|&readers| readers > 0);
            if tokio::time::timeout(LINGER, back).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watched.readers.send_modify(|readers| *readers -= 1);
    }
}

/// Watches a room until it was left alone for a while or the replica stops.
pub(super) async fn watch(app: Arc<App>, watched: Arc<Watched>) {
    let (replicas, followed) = watch::channel(Vec::new());
    let (others, heard) = watch::channel(steps::Others::default());
    let of = || {
        (
            Arc::clone(&app),
            watched.room.clone(),
            Arc::clone(&watched.board),
        )
    };
    let steps = {
        let (app, room, board) = of();
        steps::tell(app, room, board, followed, others)
    };
    let changes = {
        let (app, room, board) = of();
        changes::tell(app, room, board, replicas, heard)
    };
    let over = async {
        loop {
            watched.left_alone().await;
            if app.live.forget(&watched) {
                return;
            }
        }
    };
    tokio::select! {
        () = over => {}
        () = app.shutdown.soft() => {}
        // Neither ends. They share a task: each waits nearly always.
        () = steps => {}
        () = changes => {}
    }
}
