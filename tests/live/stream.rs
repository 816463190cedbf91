//! A stream as a page reads it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::support::{PATIENCE, Replica, World};

/// An event, and when it was read.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
    pub read: Instant,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Read {
    events: Vec<Event>,
    /// What is no event: comments, `retry`, ids alone.
    other: Vec<String>,
    bytes: usize,
    last_id: Option<String>,
    ended: Option<Instant>,
}

/// A stream that is being read, until the value is dropped.
pub struct Stream {
    pub headers: HeaderMap,
    read: watch::Receiver<Read>,
    _reading: AbortOnDropHandle<()>,
}

impl Stream {
    /// Opens the stream of a room, as a page that was just loaded.
    pub async fn of(world: &World, replica: Replica, room: &str) -> Self {
        Self::open(world, replica, room, None).await
    }

    /// Comes back to the stream of a room.
    pub async fn again(world: &World, replica: Replica, room: &str, last: &str) -> Self {
        Self::open(world, replica, room, Some(last)).await
    }

    /// Opens a stream and waits until it has told how the room stands, and that the other replica is alive.
    pub async fn settled(world: &World, replica: Replica, room: &str) -> Self {
        let stream = Self::of(world, replica, room).await;
        stream.first("audit", |_| true).await;
        stream.first("replicas", |data| alive(data) == 2).await;
        stream
    }

    async fn open(world: &World, replica: Replica, room: &str, last: Option<&str>) -> Self {
        let mut request = world.request(replica, Method::GET, &path(room));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let headers = response.headers().clone();
        let (to, read) = watch::channel(Read::default());
        let reading = tokio::spawn(read_all(response, Arc::new(to)));
        Self {
            headers,
            read,
            _reading: AbortOnDropHandle::new(reading),
        }
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.read.borrow().events.clone()
    }

    /// The data of all events of a name so far.
    pub fn all(&self, name: &str) -> Vec<Value> {
        let read = self.read.borrow();
        let named = read.events.iter().filter(|event| event.name == name);
        named.map(|event| event.data.clone()).collect()
    }

    /// What was read that is no event.
    pub fn other(&self) -> Vec<String> {
        self.read.borrow().other.clone()
    }

    /// How much was read.
    pub fn bytes(&self) -> usize {
        self.read.borrow().bytes
    }

    /// With what a page would come back.
    pub fn last_id(&self) -> String {
        self.read.borrow().last_id.clone().expect("an id")
    }

    /// The first event of a name whose data is as wanted.
    pub async fn first(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Event {
        self.first_after(0, name, wanted).await
    }

    /// The same, without the first `count` events.
    pub async fn first_after(
        &self,
        count: usize,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Event {
        self.until(&format!("an event {name}"), |read| {
            let mut events = read.events.iter().skip(count);
            events
                .find(|event| event.name == name && wanted(&event.data))
                .cloned()
        })
        .await
    }

    /// Waits until the stream has ended, and tells when.
    pub async fn end(&self) -> Instant {
        self.until("the end of the stream", |read| read.ended).await
    }

    /// Waits until something that is no event was read.
    pub async fn says(&self, text: &str) {
        self.until(text, |read| {
            let mut other = read.other.iter();
            other.any(|other| other.contains(text)).then_some(())
        })
        .await;
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&Read) -> Option<T>) -> T {
        let mut read = self.read.clone();
        let mut found = None;
        let looking = read.wait_for(|read| {
            found = look(read);
            found.is_some()
        });
        let waited = tokio::time::timeout(PATIENCE, looking).await;
        let failed = !matches!(waited, Ok(Ok(_)));
        drop(waited);
        if failed {
            panic!(
                "{what}: not within {PATIENCE:?}; read: {:#?}",
                self.events()
            );
        }
        found.expect("it was found")
    }
}

/// The path of a room's stream.
pub fn path(room: &str) -> String {
    format!("/api/rooms/{room}/live")
}

/// How many replicas are alive.
pub fn alive(replicas: &Value) -> usize {
    let replicas = replicas["replicas"].as_array().expect("a list");
    let alive = replicas.iter().filter(|replica| replica["alive"] == true);
    alive.count()
}

/// What is told of a replica.
pub fn of_replica<'a>(replicas: &'a Value, name: &str) -> &'a Value {
    let replicas = replicas["replicas"].as_array().expect("a list");
    let mut named = replicas.iter().filter(|replica| replica["name"] == name);
    named.next().unwrap_or(&Value::Null)
}

/// What an event of seats tells of a seat.
pub fn of_seat<'a>(seats: &'a Value, name: &str) -> &'a Value {
    let seats = seats["seats"].as_array().expect("a list");
    let mut named = seats.iter().filter(|seat| seat["seat"] == name);
    named.next().unwrap_or(&Value::Null)
}

/// The number in an id.
pub fn number(id: &str) -> u64 {
    let (_, number) = id.split_once('-').expect("a stream and a number");
    number.parse().expect("a number")
}

/// How long what happened took to be read.
pub fn since(start: Instant, event: &Event) -> Duration {
    event.read.saturating_duration_since(start)
}

async fn read_all(mut response: Response, to: Arc<watch::Sender<Read>>) {
    let mut text = Vec::new();
    // A connection that breaks ends a stream as well.
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk);
        to.send_modify(|read| {
            read.bytes += chunk.len();
            while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = text.drain(..end + 2).collect();
                read.take(std::str::from_utf8(&block[..end]).expect("UTF-8"));
            }
        });
    }
    to.send_modify(|read| read.ended = Some(Instant::now()));
}

impl Read {
    /// As browsers read it (HTML, "Interpreting an event stream").
    fn take(&mut self, block: &str) {
        let (mut id, mut name, mut data) = (None, None, None);
        for line in block.split('\n') {
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => name = Some(value.to_owned()),
                Some(("data", value)) => {
                    assert!(data.is_none(), "one line of data: {block}");
                    data = Some(serde_json::from_str(value).expect("JSON"));
                }
                _ => self.other.push(line.to_owned()),
            }
        }
        self.last_id = id.clone().or(self.last_id.take());
        if let (Some(name), Some(data)) = (name, data) {
            let read = Instant::now();
            self.events.push(Event {
                id,
                name,
                data,
                read,
            });
        }
    }
}
