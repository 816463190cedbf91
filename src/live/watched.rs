//! A room that somebody watches on this replica.
//!
//! Promises: however many watch, the work for a room is done once, from the first reader until [`LINGER`] after the
//! last one. Nothing is done for a room that nobody watches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

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
    /// The work for the room has ended, and with it every stream.
    pub(super) over: CancellationToken,
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
            over: CancellationToken::new(),
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

/// Watches a room until it was left alone for a while or the replica stops. However it ends, a fault of ours included,
/// the room is forgotten and its streams end: who comes back finds it watched anew.
pub(super) async fn watch(app: Arc<App>, watched: Arc<Watched>) {
    let _ending = Ending {
        app: &app,
        watched: &watched,
    };
    let (replicas, followed) = watch::channel(Vec::new());
    let (others, heard) = watch::channel(steps::Others::default());
    let (room, board) = (&watched.room, &watched.board);
    let steps = steps::tell(
        Arc::clone(&app),
        room.clone(),
        Arc::clone(board),
        followed,
        others,
    );
    let changes = changes::tell(
        Arc::clone(&app),
        room.clone(),
        Arc::clone(board),
        replicas,
        heard,
    );
    let left = async {
        watched.left_alone().await;
        // Who came at this very moment is not sent away.
        while !app.live.forget(&watched) {
            watched.left_alone().await;
        }
    };
    tokio::select! {
        () = left => {}
        () = app.shutdown.soft() => {}
        // These two never end. They share a task: each waits nearly always.
        () = steps => {}
        () = changes => {}
    }
}

/// The end of the work for a room.
struct Ending<'a> {
    app: &'a App,
    watched: &'a Arc<Watched>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.app.live.remove(self.watched);
        self.watched.over.cancel();
    }
}
