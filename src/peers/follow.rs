//! Following the feed of another replica: one connection, made again whenever it ends.
//!
//! Promises: a replica that says nothing for `SILENT_AFTER` is told as silent, one that refuses connections as gone,
//! and both as alive again with their first word. Nothing of this delays anybody else. Does not promise what was said
//! while there was no connection.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Response, Url};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::feed::{Beat, Line};
use super::{Replica, address};
use crate::app::App;
use crate::journal::Told;
use crate::lock::backoff::Backoff;

/// A replica that is there says something every half second.
const SILENT_AFTER: Duration = Duration::from_millis(1200);

/// A silent connection is given up after this: the host at its other end may be gone without a word.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Between two connections: at first hardly anything, since most come back at once; never so long that a replica that
/// is back is not seen within a second.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// The longest line: 128 steps with texts of some hundred letters, and room to spare.
const LONGEST_LINE: usize = 512 * 1024;

/// What is heard of a replica.
#[derive(Debug)]
pub enum Heard {
    /// Something happened there, in this order.
    Told(Vec<Arc<Told>>),
    /// It is there.
    Beat(Beat),
    /// It says nothing.
    Silent,
    /// Nobody listens at its address.
    Gone,
}

/// Follows a replica for ever and sends what is heard, with its name. Ends when nobody takes it any more.
pub async fn follow(
    app: Arc<App>,
    replica: Replica,
    room: String,
    to: mpsc::Sender<(String, Heard)>,
) {
    let Some(url) = address(&replica, "feed", &[&room]) else {
        tracing::warn!(url = replica.url, "a replica has an address that is none");
        return;
    };
    let mut follower = Follower {
        app,
        name: replica.name,
        to,
        pauses: pauses(),
    };
    while follower.once(url.clone()).await.is_some() {
        tokio::time::sleep(follower.pauses.next_pause()).await;
    }
}

fn pauses() -> Backoff {
    Backoff::new(FIRST_PAUSE, LONGEST_PAUSE)
}

struct Follower {
    app: Arc<App>,
    name: String,
    to: mpsc::Sender<(String, Heard)>,
    pauses: Backoff,
}

impl Follower {
    /// One connection, from its begin to its end. None when nobody takes what is heard.
    async fn once(&mut self, url: Url) -> Option<()> {
        let asked = timeout(SILENT_AFTER, self.app.peers.client().get(url).send());
        let response = match asked.await {
            Ok(Ok(response)) if response.status().is_success() => response,
            Ok(Err(error)) if error.is_connect() => return self.send(Heard::Gone).await,
            _ => return self.send(Heard::Silent).await,
        };
        let mut lines = Lines {
            response,
            read: Vec::new(),
        };
        loop {
            let line = match timeout(SILENT_AFTER, lines.next()).await {
                Ok(line) => line,
                Err(_) => {
                    self.send(Heard::Silent).await?;
                    timeout(GIVE_UP_AFTER, lines.next()).await.ok().flatten()
                }
            };
            let Some(line) = line else {
                return Some(());
            };
            self.pauses = pauses();
            self.take(&line).await?;
        }
    }

    async fn take(&self, line: &[u8]) -> Option<()> {
        match serde_json::from_slice(line) {
            Ok(Line::Told(told)) => self.send(Heard::Told(told)).await,
            Ok(Line::Beat(beat)) => self.send(Heard::Beat(beat)).await,
            // A replica of another version may tell what is not known here.
            Err(error) => {
                tracing::debug!(%error, replica = self.name, "a line of a replica is not understood");
                Some(())
            }
        }
    }

    async fn send(&self, heard: Heard) -> Option<()> {
        self.to.send((self.name.clone(), heard)).await.ok()
    }
}

/// The lines of an answer as they come.
struct Lines {
    response: Response,
    read: Vec<u8>,
}

impl Lines {
    /// The next line; none at the end, at an error, and when a line is too long. A future that is dropped loses nothing.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.pop();
                return Some(line);
            }
            if self.read.len() > LONGEST_LINE {
                return None;
            }
            let more = self.response.chunk().await.ok().flatten()?;
            self.read.extend_from_slice(&more);
        }
    }
}
