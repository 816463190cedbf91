//! Sending what a form asks for through other replicas, or through all of them at once.
//!
//! A page may ask nothing of another replica itself: the rule of origins refuses it, rightly. So the replica that
//! served the page passes it on by HTTP, as a race does.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::http::kind::Kind;
use crate::http::problem::Problem;
use crate::invalid::InvalidField;
use crate::peers::{self, Replica};
use crate::room::RoomName;

/// In the place of a replica's name: all that answer, at once.
pub const ALL: &str = "*";

/// Longer than any attempt without a pause can take.
const ANSWER_LIMIT: Duration = Duration::from_secs(160);

/// What a form asks for besides this replica itself, which runs its own attempts without a detour.
pub fn others(app: &App, via: Option<String>) -> Option<String> {
    via.filter(|name| *name != app.me.name)
}

/// Sends a body as the API takes it, an attempt of its own for each replica that is meant, and brings the attempts.
///
/// # Errors
/// What kept it from being an attempt anywhere.
pub async fn send(
    app: &Arc<App>,
    room: &RoomName,
    via: &str,
    path: &'static str,
    body: &Value,
) -> Result<Vec<Uuid>, Problem> {
    let meant = meant(peers::replicas(app).await?, via)?;
    // Tasks of their own: who hangs up does not leave one replica asked and the other not.
    let sending = meant.into_iter().map(|replica| {
        let sent = send_one(Arc::clone(app), room.clone(), replica, path, body.clone());
        tokio::spawn(sent)
    });
    let sent = join_all(sending.collect::<Vec<_>>()).await;
    sent.into_iter().flatten().collect()
}

fn meant(mut replicas: Vec<Replica>, via: &str) -> Result<Vec<Replica>, InvalidField> {
    replicas.retain(|replica| replica.alive && (via == ALL || replica.name == via));
    if replicas.is_empty() {
        return Err(InvalidField::new(
            "via",
            "must be a replica that answers; nothing was booked or moved",
        ));
    }
    Ok(replicas)
}

async fn send_one(
    app: Arc<App>,
    room: RoomName,
    replica: Replica,
    path: &'static str,
    mut body: Value,
) -> Result<Uuid, Problem> {
    let attempt = Uuid::new_v4();
    body["attempt"] = json!(attempt);
    let base = replica.url.trim_end_matches('/');
    let url = format!("{base}/api/rooms/{room}/{path}");
    let request = app.peers.client().post(url).timeout(ANSWER_LIMIT);
    let answered = async {
        let answer = request.json(&body).send().await?;
        let status = answer.status();
        Ok::<_, reqwest::Error>((status, answer.json::<Value>().await?))
    };
    match answered.await {
        Ok((status, answer)) if is_no_attempt(status, &answer) => Err(passed_on(&answer)),
        // Also without an answer it was an attempt, and may have happened.
        _ => Ok(attempt),
    }
}

/// Answers to what is no well-formed attempt. All others are told by the room's page.
fn is_no_attempt(status: StatusCode, problem: &Value) -> bool {
    let too_little = problem["type"] == "/problems/insufficient-funds";
    matches!(status.as_u16(), 400 | 403 | 404 | 413 | 415 | 422) && !too_little
}

fn passed_on(problem: &Value) -> Problem {
    let detail = problem["detail"]
        .as_str()
        .unwrap_or("the replica did not say why");
    let kind = problem["type"].as_str().and_then(Kind::of_type);
    let mut passed = Problem::new(kind.unwrap_or(Kind::INVALID_FIELD), detail);
    passed.field = problem["field"].as_str().map(Into::into);
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(name: &str, alive: bool) -> Replica {
        Replica {
            name: name.to_owned(),
            url: String::new(),
            pid: 1,
            alive,
            last_seen: None,
        }
    }

    #[test]
    fn only_replicas_that_answer_are_meant() {
        let replicas = || vec![replica("A", true), replica("B", true), replica("C", false)];
        let names = |via| {
            let meant = meant(replicas(), via)?;
            let names = meant.into_iter().map(|replica| replica.name);
            Ok::<_, InvalidField>(names.collect::<Vec<_>>())
        };
        assert_eq!(names(ALL).unwrap(), ["A", "B"]);
        assert_eq!(names("B").unwrap(), ["B"]);
        assert_eq!(names("C").unwrap_err().field, "via");
        assert_eq!(names("").unwrap_err().field, "via");
    }
}
