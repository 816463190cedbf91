//! The other replicas: where they are, whether they answer, and what is asked of all of them.
//!
//! Replicas find each other in the `replica` table, which each writes once when it starts. Everything after that
//! goes over HTTP, never through the database: an attempt may be holding it. A silent peer is a gap, never a wait.

pub mod feed;
pub mod follow;
mod store;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::app::{App, Me, REQUEST_LIMIT};
use crate::database::{Database, DatabaseError, Transaction};
use crate::journal::Record;
use crate::name::Name;
use crate::section::AtGate;

/// How long a peer may take to answer what another replica asks.
pub const PEER_LIMIT: Duration = Duration::from_millis(300);

/// How long a connection to a peer is kept for the next question.
const KEEP_CONNECTION: Duration = Duration::from_secs(5);

/// A replica as the others see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Its process.
    pub pid: i64,
    /// Whether it answered just now.
    pub alive: bool,
    /// When it last answered, in milliseconds since 1970; none if it never did.
    pub last_seen: Option<f64>,
}

/// How the other replicas are asked.
#[derive(Debug)]
pub struct Peers {
    client: reqwest::Client,
    last_seen: Mutex<HashMap<String, f64>>,
}

/// What a peer said to a question.
enum Said<T> {
    Answer(T),
    /// It is not there: its connection was refused.
    Gone,
    /// It is there and silent, or said something else.
    Silent,
}

impl Peers {
    /// A client without proxies: replicas speak to each other directly.
    ///
    /// # Errors
    /// When no client can be made on this machine.
    pub fn new() -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_idle_timeout(KEEP_CONNECTION)
            .build()?;
        Ok(Self {
            client,
            last_seen: Mutex::default(),
        })
    }

    /// The client, for requests that are no questions between replicas: races.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    async fn ask<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Said<T> {
        let asked = async {
            request
                .timeout(PEER_LIMIT)
                .send()
                .await?
                .error_for_status()?
                .json()
                .await
        };
        match asked.await {
            Ok(answer) => Said::Answer(answer),
            Err(error) if error.is_connect() && !error.is_timeout() => Said::Gone,
            Err(_) => Said::Silent,
        }
    }

    fn seen(&self, name: &str, now_ms: f64) {
        self.last_seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), now_ms);
    }

    fn last_seen(&self, name: &str) -> Option<f64> {
        self.last_seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .copied()
    }
}

/// Writes down where this replica is.
pub async fn register(database: &Database, me: &Me) -> Result<(), DatabaseError> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    store::put(&mut transaction, me).await?;
    transaction
        .commit()
        .await
        .map_err(|error| DatabaseError::Busy(error.to_string()))
}

/// Forgets this replica, if nobody else has taken its name since.
pub async fn sign_off(database: &Database, me: &Me) -> Result<(), DatabaseError> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    store::remove(&mut transaction, me).await?;
    transaction
        .commit()
        .await
        .map_err(|error| DatabaseError::Busy(error.to_string()))
}

/// Forgets all replicas: those of an earlier run are gone.
pub async fn forget_all(transaction: &mut Transaction) -> Result<(), DatabaseError> {
    store::clear(transaction).await
}

/// All replicas by name, each asked whether it is alive.
pub async fn replicas(app: &App) -> Result<Vec<Replica>, DatabaseError> {
    let known = store::all(&mut app.database.read(REQUEST_LIMIT).await?).await?;
    let asked = known.into_iter().map(|mut replica| async move {
        replica.alive = replica.name == app.me.name || is_alive(app, &replica).await;
        if replica.alive {
            app.peers.seen(&replica.name, app.journal.now_ms());
        }
        replica.last_seen = app.peers.last_seen(&replica.name);
        replica
    });
    Ok(join_all(asked).await)
}

async fn is_alive(app: &App, replica: &Replica) -> bool {
    let request = app
        .peers
        .client
        .get(format!("{}/healthz", replica.url))
        .timeout(PEER_LIMIT);
    request
        .send()
        .await
        .is_ok_and(|answer| answer.status().is_success())
}

/// The other replicas by name, not asked for anything.
pub async fn others(app: &App) -> Result<Vec<Replica>, DatabaseError> {
    let mut known = store::all(&mut app.database.read(REQUEST_LIMIT).await?).await?;
    known.retain(|replica| replica.name != app.me.name);
    Ok(known)
}

/// Who waits at a gate, over all replicas.
pub async fn waiting_at(app: &App, room: &str, gate: &Name) -> Result<Vec<AtGate>, DatabaseError> {
    let mut waiting = app.gates.waiting(room, gate);
    let question = &[room, gate.as_str()];
    waiting.extend(
        gather::<Vec<AtGate>>(app, reqwest::Method::GET, "gates", question)
            .await?
            .into_iter()
            .flatten(),
    );
    Ok(waiting)
}

/// Opens a gate on all replicas, and tells who was let go.
pub async fn open(app: &App, room: &str, gate: &Name) -> Result<Vec<AtGate>, DatabaseError> {
    let mut gone = app.gates.open(room, gate);
    let question = &[room, gate.as_str()];
    gone.extend(
        gather::<Vec<AtGate>>(app, reqwest::Method::POST, "gates", question)
            .await?
            .into_iter()
            .flatten(),
    );
    Ok(gone)
}

/// Asks all other replicas; those that do not answer are left out.
async fn gather<T: DeserializeOwned>(
    app: &App,
    method: reqwest::Method,
    what: &str,
    path: &[&str],
) -> Result<Vec<T>, DatabaseError> {
    let peers = others(app).await?;
    let asked = peers.iter().filter_map(|peer| {
        let url = address(peer, what, path)?;
        Some(app.peers.ask(app.peers.client.request(method.clone(), url)))
    });
    let said = join_all(asked).await;
    Ok(said
        .into_iter()
        .filter_map(|said| {
            if let Said::Answer(answer) = said {
                Some(answer)
            } else {
                None
            }
        })
        .collect())
}

/// Leases of ended attempts that may still stand, over all replicas; none when one of them did not say.
pub async fn leases_left(app: &App, room: &str) -> Result<Option<u64>, DatabaseError> {
    let peers = others(app).await?;
    let asked = peers.iter().filter_map(|peer| {
        let url = address(peer, "leases-left", &[room])?;
        Some(app.peers.ask::<u64>(app.peers.client.get(url)))
    });
    let said = join_all(asked).await;
    let mut sum = app.leases_left.of(room);
    for answer in said {
        match answer {
            Said::Answer(left) => sum += left,
            Said::Gone => {}
            Said::Silent => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// What is remembered of an attempt, by whichever replica it ran on.
pub async fn record(app: &App, attempt: Uuid) -> Option<Record> {
    if let Some(record) = app.journal.record(attempt) {
        return Some(record);
    }
    let found: Vec<Record> = gather(
        app,
        reqwest::Method::GET,
        "attempts",
        &[&attempt.to_string()],
    )
    .await
    .ok()?;
    found.into_iter().next()
}

/// The address of a question to a peer, its words escaped.
fn address(peer: &Replica, what: &str, path: &[&str]) -> Option<reqwest::Url> {
    let mut url = reqwest::Url::parse(&peer.url).ok()?;
    url.path_segments_mut()
        .ok()?
        .clear()
        .extend(["peer", what])
        .extend(path);
    Some(url)
}
