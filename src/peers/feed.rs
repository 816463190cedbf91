//! What a replica tells another about a room, line by line, as long as the other listens.
//!
//! Promises: a line at least every [`BEAT_EVERY`], so that silence means something; a replica that stops tells what its
//! last attempts do until they have ended or their time is over. The answer is from memory alone. Does not promise all:
//! who reads too slowly reads [`Told::Untold`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::app::App;
use crate::journal::{Listener, Told};

/// How often a replica says that it is there. Two beats may be lost before it is taken for silent.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Something happened, in this order.
    Told(Vec<Arc<Told>>),
    /// The replica is there.
    Beat(Beat),
}

/// What is said with each beat.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Beat {
    /// Leases of ended attempts of the room that may still stand.
    pub leases_left: u64,
}

/// The lines about a room from now on; `place` is given back when nobody reads them any more.
pub fn lines(
    app: Arc<App>,
    room: String,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut beats = interval(BEAT_EVERY);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = Feed {
        listener: app.journal.listen(&room),
        app,
        room,
        beats,
        _place: place,
    };
    unfold(feed, async |mut feed| Some((Ok(feed.next().await?), feed)))
}

struct Feed {
    app: Arc<App>,
    room: String,
    listener: Listener,
    beats: Interval,
    _place: OwnedSemaphorePermit,
}

impl Feed {
    async fn next(&mut self) -> Option<Bytes> {
        let line = tokio::select! {
            biased;
            told = self.listener.next() => Line::Told(told),
            () = self.app.shutdown.hard() => Line::Told(self.listener.rest()?),
            _ = self.beats.tick() => Line::Beat(Beat {
                leases_left: self.app.leases_left.of(&self.room),
            }),
        };
        let mut text = serde_json::to_vec(&line).ok()?;
        text.push(b'\n');
        Some(text.into())
    }
}
