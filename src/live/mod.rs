//! A room as it happens: the steps of all replicas and the changes of the room in one stream of events.
//!
//! Promises: each replica does the work of a room once, however many read; a reader costs a place and a number,
//! whether it reads or not; a room that nobody watches costs nothing. Does not promise that a reader gets all: who falls
//! behind, or comes back too late, hears `gap` and reads the page anew.
//!
//! Read on in `watched` (the work for a room), `steps` and `changes` (its two halves), `board` (where what they
//! tell is pinned) and `reader` (one page).

mod board;
mod changes;
mod event;
mod merge;
mod reader;
mod steps;
mod store;
mod view;
mod watched;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use reader::Reader;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use watched::Watched;

use crate::app::App;
use crate::room::RoomName;

/// How many streams a replica serves. Each costs a connection, and many systems give a process 1024 of them for all
/// that it does; a class and its guests are a tenth of this.
pub const MOST_READERS: usize = 500;

/// How many feeds a replica tells to others: a few replicas, each with the rooms of a class.
pub const MOST_FEEDS: usize = 300;

/// How many rooms a replica watches at once, those that were just left included: a class, each in a room of its own.
const MOST_ROOMS: usize = 100;

/// The rooms that are watched on this replica.
#[derive(Debug)]
pub struct Live {
    rooms: Mutex<HashMap<RoomName, Arc<Watched>>>,
    places: Arc<Semaphore>,
    feeds: Arc<Semaphore>,
}

/// So many read here that one more would help nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} {what} on this replica")]
pub struct TooManyReaders {
    count: usize,
    what: &'static str,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            rooms: Mutex::default(),
            places: Arc::new(Semaphore::new(MOST_READERS)),
            feeds: Arc::new(Semaphore::new(MOST_FEEDS)),
        }
    }
}

impl Live {
    /// How many streams are read just now.
    pub fn readers(&self) -> usize {
        MOST_READERS - self.places.available_permits()
    }

    /// How many rooms are watched just now, those that were just left included.
    pub fn rooms(&self) -> usize {
        self.watched().len()
    }

    /// How many feeds are told to other replicas just now.
    pub fn feeds(&self) -> usize {
        MOST_FEEDS - self.feeds.available_permits()
    }

    /// A place for one more feed.
    ///
    /// # Errors
    /// [`TooManyReaders`].
    pub fn feed(&self) -> Result<OwnedSemaphorePermit, TooManyReaders> {
        let place = Arc::clone(&self.feeds).try_acquire_owned();
        place.map_err(|_| TooManyReaders {
            count: MOST_FEEDS,
            what: "feeds are followed",
        })
    }

    /// Forgets a room that was left alone; not if somebody has come meanwhile.
    fn forget(&self, watched: &Watched) -> bool {
        let mut rooms = self.watched();
        let forgotten = watched.is_left_alone();
        if forgotten {
            rooms.remove(&watched.room);
        }
        forgotten
    }

    /// Forgets a room whose work has ended, unless it is watched anew already.
    fn remove(&self, watched: &Arc<Watched>) {
        let mut rooms = self.watched();
        if rooms
            .get(&watched.room)
            .is_some_and(|other| Arc::ptr_eq(other, watched))
        {
            rooms.remove(&watched.room);
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<RoomName, Arc<Watched>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to read a room that exists and has this epoch; `last` is the id of the event that was read last.
///
/// # Errors
/// [`TooManyReaders`].
pub fn read(
    app: &Arc<App>,
    room: RoomName,
    epoch: i64,
    last: Option<&str>,
) -> Result<Reader, TooManyReaders> {
    let permit = Arc::clone(&app.live.places).try_acquire_owned();
    let permit = permit.map_err(|_| TooManyReaders {
        count: MOST_READERS,
        what: "streams are read",
    })?;
    let place = {
        let mut rooms = app.live.watched();
        if rooms.len() >= MOST_ROOMS && !rooms.contains_key(&room) {
            return Err(TooManyReaders {
                count: MOST_ROOMS,
                what: "rooms are watched",
            });
        }
        let watched = rooms.entry(room.clone()).or_insert_with(|| {
            let watched = Arc::new(Watched::new(room));
            let watching = watched::watch(Arc::clone(app), Arc::clone(&watched));
            app.runtime.spawn(watching);
            watched
        });
        watched.take_place(permit)
    };
    Ok(Reader::new(app, place, epoch, last))
}
