//! A room of a test's own, in the words of the domain.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::attempt::Attempt;
use super::audit::Audit;
use super::deadline::{PATIENCE, eventually};
use super::world::{Connection, Replica};

/// A room, seen from one of the replicas.
#[derive(Clone)]
pub struct Room {
    pub name: String,
    connection: Connection,
}

/// Who waits at a gate.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Waiter {
    pub attempt: String,
    pub replica: String,
    pub at: String,
}

/// A name for a room that no other test uses.
pub fn unique(topic: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let topic: String = topic.chars().take(30).collect();
    format!("{topic}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Room {
    pub(super) fn new(name: &str, connection: Connection) -> Self {
        Self {
            name: name.to_owned(),
            connection,
        }
    }

    /// The same room, asked at the other replica.
    pub fn seen_from(&self, replica: Replica) -> Self {
        let mut room = self.clone();
        room.connection.replica = replica;
        room
    }

    /// Any request below the room's path.
    pub async fn asks(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.connection.request(method, &self.path(path));
        if let Some(body) = body {
            request = request.json(&body);
        }
        Answer::to(request).await.expect("an answer")
    }

    /// A body as it is, under any content type or none.
    pub async fn posts(
        &self,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let answer = self.tries_to_post(path, content_type, body).await;
        answer.expect("an answer")
    }

    /// The same, where the replica may close the connection before it was all sent.
    pub async fn tries_to_post(
        &self,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.connection.post(&self.path(path)).body(body);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        Answer::to(request).await
    }

    /// An attempt to book.
    pub fn books(&self, buyer: &str, seat: &str) -> Attempt {
        self.attempts("bookings", json!({"seat": seat, "buyer": buyer}))
    }

    /// An attempt to move money.
    pub fn transfers(&self, from: &str, to: &str, amount: &str) -> Attempt {
        self.attempts(
            "transfers",
            json!({"from": from, "to": to, "amount": amount}),
        )
    }

    /// An attempt with a body of any shape.
    pub fn attempts(&self, path: &str, body: Value) -> Attempt {
        Attempt::new(
            self.connection.clone(),
            self.path(&format!("/{path}")),
            body,
        )
    }

    /// Makes the room or replaces it.
    pub async fn is_made(&self, shape: Value) -> Answer {
        self.asks(Method::PUT, "", Some(shape)).await
    }

    /// Changes switches; gives the room.
    pub async fn switches(&self, switches: Value) -> Value {
        let answer = self.asks(Method::PATCH, "/switches", Some(switches)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Frees its seats and opens its wallets anew.
    pub async fn resets(&self) -> Value {
        let answer = self.asks(Method::POST, "/reset", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The room as JSON.
    pub async fn looks(&self) -> Value {
        let answer = self.asks(Method::GET, "", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// How it looks when no lease of an ended attempt is left: only then may two looks be compared, since an attempt is
    /// answered before the lock system has answered its release.
    pub async fn looks_at_rest(&self) -> Value {
        self.at_rest("", "/audit/leases_left").await
    }

    /// Its audit as it is answered, when no lease of an ended attempt is left.
    pub async fn audit_at_rest(&self) -> Value {
        self.at_rest("/audit", "/leases_left").await
    }

    async fn at_rest(&self, path: &str, leases_left: &str) -> Value {
        let (answer, _) = eventually("no lease left", PATIENCE, async || {
            let answer = self.asks(Method::GET, path, None).await;
            match answer.json().pointer(leases_left) {
                Some(left) if *left == 0 => Ok(answer.json()),
                _ => Err(format!("{answer:?}")),
            }
        })
        .await;
        answer
    }

    /// Its number of the present switches.
    pub async fn epoch(&self) -> i64 {
        self.looks().await["epoch"].as_i64().expect("a number")
    }

    /// The balance of a wallet.
    pub async fn balance(&self, wallet: &str) -> String {
        let room = self.looks().await;
        let wallets = room["wallets"].as_array().expect("a list");
        wallets
            .iter()
            .find(|one| one["wallet"] == wallet)
            .and_then(|one| one["balance"].as_str())
            .unwrap_or_else(|| panic!("the balance of {wallet}: {room}"))
            .to_owned()
    }

    /// What the database says about it.
    pub async fn audit(&self) -> Audit {
        let answer = self.asks(Method::GET, "/audit", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_value(answer.json())
            .unwrap_or_else(|e| panic!("an audit ({e}): {answer:?}"))
    }

    /// Runs a race and gives its answer as JSON.
    pub async fn race(&self, race: &str) -> Value {
        let answer = self.asks_for_race(race).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Asks for a race that may be refused.
    pub async fn asks_for_race(&self, race: &str) -> Answer {
        self.asks(Method::POST, "/races", Some(json!({"race": race})))
            .await
    }

    /// Who waits at a gate now.
    pub async fn gate(&self, gate: &str) -> Vec<Waiter> {
        waiters(
            &self
                .asks(Method::GET, &format!("/gates/{gate}"), None)
                .await,
        )
    }

    /// Waits until `count` attempts stand at the gate, and gives them in the order of their replicas.
    pub async fn waits_at_gate(&self, gate: &str, count: usize) -> Vec<Waiter> {
        let what = format!("{count} attempts at gate {gate:?} of room {:?}", self.name);
        let (mut waiting, _) = eventually(&what, PATIENCE, async || {
            let waiting = self.gate(gate).await;
            if waiting.len() == count {
                Ok(waiting)
            } else {
                Err(format!("{waiting:?}"))
            }
        })
        .await;
        waiting.sort_by(|one, other| one.replica.cmp(&other.replica));
        waiting
    }

    /// Waits until this many attempts, or more, stand at the gate.
    pub async fn at_least_wait_at_gate(&self, gate: &str, count: usize) {
        let what = format!(
            "at least {count} attempts at gate {gate:?} of room {:?}",
            self.name
        );
        eventually(&what, PATIENCE, async || {
            let waiting = self.gate(gate).await;
            if waiting.len() >= count {
                Ok(())
            } else {
                Err(format!("{waiting:?}"))
            }
        })
        .await;
    }

    /// Waits until one attempt of each replica stands at the gate, each at this point of its walk.
    pub async fn both_wait_at_gate(&self, gate: &str, point: &str) {
        let waiting = self.waits_at_gate(gate, 2).await;
        let seen: Vec<(&str, &str)> = waiting
            .iter()
            .map(|waiter| (waiter.replica.as_str(), waiter.at.as_str()))
            .collect();
        assert_eq!(seen, [("A", point), ("B", point)]);
    }

    /// Waits until one attempt of this replica stands at the gate, at this point of its walk.
    pub async fn one_waits_at_gate(&self, gate: &str, replica: Replica, point: &str) {
        let waiting = self.waits_at_gate(gate, 1).await;
        assert_eq!(
            (waiting[0].replica.as_str(), waiting[0].at.as_str()),
            (replica.name(), point)
        );
    }

    /// Lets go who waits at the gate; fails when nobody does.
    pub async fn opens(&self, gate: &str) -> Vec<Waiter> {
        let let_go = waiters(
            &self
                .asks(Method::POST, &format!("/gates/{gate}"), None)
                .await,
        );
        assert!(!let_go.is_empty(), "nobody waited at gate {gate:?}");
        let_go
    }

    /// Waits until no lease of an ended attempt is left, as the audit counts them.
    pub async fn has_no_lease_left(&self, limit: Duration) -> Duration {
        let (_, took) = eventually("no lease left", limit, async || {
            match self.audit().await.leases_left {
                Some(0) => Ok(()),
                left => Err(format!("leases left: {left:?}")),
            }
        })
        .await;
        took
    }

    fn path(&self, path: &str) -> String {
        format!("/rooms/{}{path}", self.name)
    }
}

fn waiters(answer: &Answer) -> Vec<Waiter> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Waiting {
        waiting: Vec<Waiter>,
    }
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_value::<Waiting>(answer.json())
        .unwrap_or_else(|error| panic!("a list of waiters ({error}): {answer:?}"))
        .waiting
}
