//! Gates: who waits there, over all replicas, and letting them go.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use super::path::Address;
use super::problem::Problem;
use super::rooms::existing_room;
use crate::name::Name;
use crate::peers;
use crate::section::AtGate;

/// Who waits, or who was let go.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WhoWaits)]
pub struct Waiting {
    waiting: Vec<AtGate>,
}

/// `GET /api/rooms/{room}/gates/{gate}`
pub async fn waiting(
    State(app): Shared,
    Address((room, gate)): Address<(String, String)>,
) -> Result<Json<Waiting>, Problem> {
    let (room, gate) = (existing_room(&app, &room).await?, gate_name(&gate)?);
    let others = peers::others(&app).await?;
    let waiting = peers::waiting_at(&app, &others, room.as_str(), &gate).await;
    Ok(Json(Waiting { waiting }))
}

/// `POST /api/rooms/{room}/gates/{gate}`
pub async fn open(
    State(app): Shared,
    Address((room, gate)): Address<(String, String)>,
) -> Result<Json<Waiting>, Problem> {
    let (room, gate) = (existing_room(&app, &room).await?, gate_name(&gate)?);
    let others = peers::others(&app).await?;
    let waiting = peers::open(&app, &others, room.as_str(), &gate).await;
    Ok(Json(Waiting { waiting }))
}

/// A name that cannot be a gate's is a gate at which nobody can wait.
pub fn gate_name(text: &str) -> Result<Name, Problem> {
    text.parse()
        .map_err(|error| Problem::not_found(format!("there is no such gate: its name {error}")))
}
