//! Gates: who waits there, over all replicas, and letting them go.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;

use super::Shared;
use super::problem::Problem;
use super::rooms::room_name;
use crate::name::Name;
use crate::peers;
use crate::section::AtGate;

/// Who waits, or who was let go.
#[derive(Debug, Serialize)]
pub struct Waiting {
    waiting: Vec<AtGate>,
}

/// `GET /api/rooms/{room}/gates/{gate}`
pub async fn waiting(
    State(app): Shared,
    Path((room, gate)): Path<(String, String)>,
) -> Result<Json<Waiting>, Problem> {
    let waiting = peers::waiting_at(&app, room_name(&room)?.as_str(), &gate_name(&gate)?).await?;
    Ok(Json(Waiting { waiting }))
}

/// `POST /api/rooms/{room}/gates/{gate}`
pub async fn open(
    State(app): Shared,
    Path((room, gate)): Path<(String, String)>,
) -> Result<Json<Waiting>, Problem> {
    let waiting = peers::open(&app, room_name(&room)?.as_str(), &gate_name(&gate)?).await?;
    Ok(Json(Waiting { waiting }))
}

/// A name that cannot be a gate's is a gate at which nobody can wait.
pub fn gate_name(text: &str) -> Result<Name, Problem> {
    text.parse()
        .map_err(|error| Problem::not_found(format!("there is no such gate: its name {error}")))
}
