//! The other replicas: where they are, whether they answer, and what is asked of all of them.
//!
//! Replicas find each other in the `replica` table, which each writes once when it starts. Everything after that
//! goes over HTTP, never through the database: an attempt may be holding it. A silent peer is a gap and hardly a wait:
//! 0.3 s for a question, 2 s for the opening of a gate.

pub mod feed;
pub mod follow;
mod store;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, Me};
use crate::database::{Database, DatabaseError, REQUEST_LIMIT, Transaction};
use crate::journal::Record;
use crate::name::Name;
use crate::section::AtGate;

/// How long a peer may take to answer what another replica asks.
pub const PEER_LIMIT: Duration = Duration::from_millis(300);

/// How long a peer may take to open a gate. An opening is not remembered, and a peer that closes its eyes for a moment
/// would miss it.
const OPENING_LIMIT: Duration = Duration::from_secs(2);

/// How long is waited for a replica of the same name, which may only be slow.
const NAMESAKE_LIMIT: Duration = Duration::from_secs(2);

/// How long a connection to a peer is kept for the next question.
const KEEP_CONNECTION: Duration = Duration::from_secs(5);

/// A replica as the others see it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
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
    #[schema(required)]
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

impl<T> Said<T> {
    fn answer(self) -> Option<T> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Gone | Self::Silent => None,
        }
    }
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
        let asked = async { request.send().await?.error_for_status()?.json().await };
        match asked.await {
            Ok(answer) => Said::Answer(answer),
            Err(error) if is_refused(&error) => Said::Gone,
            Err(_) => Said::Silent,
        }
    }

    async fn is_alive(&self, replica: &Replica, limit: Duration) -> bool {
        let request = self
            .client
            .get(format!("{}/healthz", replica.url))
            .timeout(limit);
        let answer = request.send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
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

/// Whether nobody listens there. A peer that cannot be reached for another reason may be alive.
fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(refused)
}

/// Writes down where this replica is.
pub async fn register(database: &Database, me: &Me) -> Result<(), DatabaseError> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    store::put(&mut transaction, me).await?;
    transaction.commit().await.map_err(DatabaseError::from)
}

/// Where another replica with this one's name answers, if one does.
pub async fn namesake(
    database: &Database,
    peers: &Peers,
    me: &Me,
) -> Result<Option<String>, DatabaseError> {
    let known = store::all(&mut database.read(REQUEST_LIMIT).await?).await?;
    let namesake = known
        .into_iter()
        .find(|known| known.name == me.name && known.url != me.url);
    match namesake {
        Some(namesake) if peers.is_alive(&namesake, NAMESAKE_LIMIT).await => Ok(Some(namesake.url)),
        _ => Ok(None),
    }
}

/// Forgets this replica, if nobody else has taken its name since.
pub async fn sign_off(database: &Database, me: &Me) -> Result<(), DatabaseError> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    store::remove(&mut transaction, me).await?;
    transaction.commit().await.map_err(DatabaseError::from)
}

/// Forgets all replicas: those of an earlier run are gone.
pub async fn forget_all(transaction: &mut Transaction) -> Result<(), DatabaseError> {
    store::clear(transaction).await
}

/// All replicas by name, each asked whether it is alive.
pub async fn replicas(app: &App) -> Result<Vec<Replica>, DatabaseError> {
    let known = store::all(&mut app.database.read(REQUEST_LIMIT).await?).await?;
    let asked = known.into_iter().map(|mut replica| async move {
        replica.alive =
            replica.name == app.me.name || app.peers.is_alive(&replica, PEER_LIMIT).await;
        if replica.alive {
            app.peers.seen(&replica.name, app.journal.now_ms());
        }
        replica.last_seen = app.peers.last_seen(&replica.name);
        replica
    });
    Ok(join_all(asked).await)
}

/// The other replicas that are written down, alive or not.
pub async fn others(app: &App) -> Result<Vec<Replica>, DatabaseError> {
    let mut known = store::all(&mut app.database.read(REQUEST_LIMIT).await?).await?;
    known.retain(|replica| replica.name != app.me.name);
    Ok(known)
}

/// Whether another replica runs a race in this room.
pub async fn race_under_way(app: &App, others: &[Replica], room: &str) -> bool {
    let said = gather::<bool>(app, others, Method::GET, "races", &[room]).await;
    said.into_iter()
        .filter_map(Said::answer)
        .any(|under_way| under_way)
}

/// Who waits at a gate, here and on the other replicas.
pub async fn waiting_at(app: &App, others: &[Replica], room: &str, gate: &Name) -> Vec<AtGate> {
    let mut waiting = app.gates.waiting(room, gate);
    waiting.extend(ask_gates(app, others, Method::GET, room, gate).await);
    waiting
}

/// Opens a gate, here and on the other replicas, and tells who was let go.
pub async fn open(app: &App, others: &[Replica], room: &str, gate: &Name) -> Vec<AtGate> {
    let mut gone = app.gates.open(room, gate);
    gone.extend(ask_gates(app, others, Method::POST, room, gate).await);
    gone
}

async fn ask_gates(
    app: &App,
    others: &[Replica],
    method: Method,
    room: &str,
    gate: &Name,
) -> Vec<AtGate> {
    let path = [room, gate.as_str()];
    let said = gather::<Vec<AtGate>>(app, others, method, "gates", &path).await;
    said.into_iter()
        .filter_map(Said::answer)
        .flatten()
        .collect()
}

/// Asks the other replicas one question, all at once.
async fn gather<T: DeserializeOwned>(
    app: &App,
    others: &[Replica],
    method: Method,
    what: &str,
    path: &[&str],
) -> Vec<Said<T>> {
    let asked = others
        .iter()
        .map(|peer| ask_one(app, peer, method.clone(), what, path));
    join_all(asked).await
}

async fn ask_one<T: DeserializeOwned>(
    app: &App,
    peer: &Replica,
    method: Method,
    what: &str,
    path: &[&str],
) -> Said<T> {
    let Some(url) = address(peer, what, path) else {
        return Said::Silent;
    };
    let limit = match method {
        Method::POST => OPENING_LIMIT,
        _ => PEER_LIMIT,
    };
    let request = app.peers.client.request(method, url);
    app.peers.ask(request.timeout(limit)).await
}

/// Leases of ended attempts that may still stand, here and on the other replicas; none when one of them did not say.
pub async fn leases_left(app: &App, others: &[Replica], room: &str) -> Option<u64> {
    let said = gather::<u64>(app, others, Method::GET, "leases-left", &[room]).await;
    let theirs = said.into_iter().map(|said| match said {
        Said::Answer(left) => Some(left),
        Said::Gone => Some(0),
        Said::Silent => None,
    });
    theirs
        .sum::<Option<u64>>()
        .map(|theirs| theirs + app.leases_left.of(room))
}

/// What the replica with this name remembers of an attempt.
pub async fn record_at(app: &App, others: &[Replica], name: &str, attempt: Uuid) -> Option<Record> {
    if name == app.me.name {
        return app.journal.record(attempt);
    }
    let peer = others.iter().find(|peer| peer.name == name)?;
    ask_one(app, peer, Method::GET, "attempts", &[&attempt.to_string()])
        .await
        .answer()
}

/// What is remembered of an attempt, by whichever replica it ran on.
pub async fn record(app: &App, attempt: Uuid) -> Option<Record> {
    if let Some(record) = app.journal.record(attempt) {
        return Some(record);
    }
    let others = others(app).await.ok()?;
    let path = [&*attempt.to_string()];
    let said = gather::<Record>(app, &others, Method::GET, "attempts", &path).await;
    said.into_iter().find_map(Said::answer)
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
