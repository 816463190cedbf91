//! One page that reads the stream of a room.
//!
//! Promises: it holds a number and what it is about to say first, and no queue; something is said at least every
//! [`HEARTBEAT`]; it ends at once when the replica is asked to stop. A page that comes back with an id reads on from
//! there, or hears `gap`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use rand::RngExt as _;
use serde::Serialize;
use tokio::sync::watch;

use super::board::{Board, Found};
use super::event::Event;
use super::view::gap;
use super::watched::Place;
use crate::app::App;

/// The longest silence: proxies take a connection for dead after 30 or 60 seconds.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// After which time a page comes back whose stream has ended. Each draws its own, so that those of a replica that
/// stops do not all come at once.
const COME_BACK_MS: std::ops::RangeInclusive<u32> = 500..=2000;

/// A reader of a room.
#[derive(Debug)]
pub struct Reader {
    place: Place,
    news: watch::Receiver<u64>,
    /// To be said before it reads on.
    first: VecDeque<Bytes>,
    /// The number of the event that it read last.
    at: u64,
    ended: bool,
}

#[derive(Serialize)]
struct Hello<'a> {
    replica: &'a str,
    room: &'a str,
    now_ms: f64,
    epoch: i64,
}

impl Reader {
    /// A reader that comes for the first time, or back with the id of the event that it read last.
    pub(super) fn new(app: &App, place: Place, epoch: i64, last: Option<&str>) -> Self {
        let board = &place.watched.board;
        let hello = Event::new(
            "hello",
            &Hello {
                replica: &app.me.name,
                room: place.watched.room.as_str(),
                now_ms: app.journal.now_ms(),
                epoch,
            },
        );
        let come_back = rand::rng().random_range(COME_BACK_MS);
        let hello = format!("retry: {come_back}\n{}", hello.without_id());
        let news = board.news();
        let (start, at) = begin(board, last);
        Self {
            first: std::iter::once(hello.into()).chain(start).collect(),
            news,
            at,
            place,
            ended: false,
        }
    }

    /// What it reads, until it falls behind or the replica stops.
    pub fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, async |mut reader| {
            Some((Ok(reader.next().await?), reader))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(text) = self.first.pop_front() {
            return Some(text);
        }
        while !self.ended {
            match self.place.watched.board.after(self.at) {
                Found::Events(text, at) => {
                    self.at = at;
                    return Some(text);
                }
                Found::Lost => return self.end(&gap().without_id()),
                Found::Nothing => {}
            }
            tokio::select! {
                biased;
                () = self.place.watched.over.cancelled() => return self.end(": come back\n\n"),
                // An error means that the board is gone, which a reader keeps.
                _ = self.news.changed() => {}
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
        None
    }

    fn end(&mut self, last_words: &str) -> Option<Bytes> {
        self.ended = true;
        Some(Bytes::copy_from_slice(last_words.as_bytes()))
    }
}

/// What is said first, and from where is read on. Who has lost its place hears so, and how the room stands.
fn begin(board: &Board, last: Option<&str>) -> (Vec<Bytes>, u64) {
    let Some(id) = last else {
        return board.start();
    };
    if let Some(at) = board.place(id) {
        return (Vec::new(), at);
    }
    let (start, at) = board.start();
    let gap = Bytes::from(gap().without_id());
    (std::iter::once(gap).chain(start).collect(), at)
}
