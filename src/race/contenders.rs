//! Those who take part in a race: each sends one real request to one replica and tells what it got.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::RacedAttempt;
use crate::app::App;
use crate::peers::Replica;
use crate::room::RoomName;

/// Longer than any attempt can take: the longest wait, pause and work, twice the work when locks are taken as given.
const ANSWER_LIMIT: Duration = Duration::from_secs(160);

/// One request of a race.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) attempt: Uuid,
    who: String,
    path: &'static str,
    body: Value,
}

impl Contender {
    /// Asks for a seat.
    pub(super) fn buyer(who: &str, seat: &str) -> Self {
        let attempt = Uuid::new_v4();
        let body = json!({"attempt": attempt, "seat": seat, "buyer": who});
        Self {
            attempt,
            who: who.to_owned(),
            path: "bookings",
            body,
        }
    }

    /// Gives money.
    pub(super) fn giver(from: &str, to: &str, amount: &str) -> Self {
        let attempt = Uuid::new_v4();
        let body = json!({"attempt": attempt, "from": from, "to": to, "amount": amount});
        Self {
            attempt,
            who: from.to_owned(),
            path: "transfers",
            body,
        }
    }

    /// Waits before the write at a gate, its renewal with it.
    pub(super) fn frozen_at(mut self, gate: &str) -> Self {
        self.body["pause"] = json!({"at": "before_write", "gate": gate, "freeze": true});
        self
    }

    /// Sends the request to a replica.
    pub(super) async fn race(self, app: &App, room: &RoomName, replica: &Replica) -> RacedAttempt {
        let url = format!("{}/api/rooms/{room}/{}", replica.url, self.path);
        let sent = Instant::now();
        let answered = async {
            let request = app
                .peers
                .client()
                .post(url)
                .timeout(ANSWER_LIMIT)
                .json(&self.body);
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            Ok::<_, reqwest::Error>((status, answer.json::<Value>().await?))
        };
        let (status, body) = answered
            .await
            .unwrap_or_else(|_| (0, json!({"type": "no-answer"})));
        RacedAttempt {
            attempt: self.attempt,
            replica: replica.name.clone(),
            token: token(&body, &self.who),
            outcome: outcome(status, self.path, &body),
            buyer: self.who,
            status,
            ms: milliseconds(sent.elapsed()),
        }
    }
}

/// To the microsecond.
fn milliseconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

fn outcome(status: u16, path: &str, body: &Value) -> String {
    if status == 201 {
        return if path == "bookings" {
            "booked"
        } else {
            "transferred"
        }
        .to_owned();
    }
    let kind = body["type"].as_str().unwrap_or("no-answer");
    kind.rsplit('/').next().unwrap_or(kind).to_owned()
}

fn token(body: &Value, who: &str) -> Option<i64> {
    body["token"]
        .as_i64()
        .or_else(|| body["tokens"][who].as_i64())
}
