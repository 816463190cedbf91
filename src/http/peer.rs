//! What replicas ask each other: each answers only for itself, from memory.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use uuid::Uuid;

use super::Shared;
use super::gates::gate_name;
use super::path::Address;
use super::problem::Problem;
use crate::journal::Record;
use crate::section::AtGate;

/// Who waits at a gate here.
pub async fn waiting(
    State(app): Shared,
    Address((room, gate)): Address<(String, String)>,
) -> Result<Json<Vec<AtGate>>, Problem> {
    Ok(Json(app.gates.waiting(&room, &gate_name(&gate)?)))
}

/// Opens a gate here.
pub async fn open(
    State(app): Shared,
    Address((room, gate)): Address<(String, String)>,
) -> Result<Json<Vec<AtGate>>, Problem> {
    Ok(Json(app.gates.open(&room, &gate_name(&gate)?)))
}

/// Leases of ended attempts of this replica.
pub async fn leases_left(State(app): Shared, Address(room): Address<String>) -> Json<u64> {
    Json(app.leases_left.of(&room))
}

/// Who reads here just now.
#[derive(Debug, Serialize)]
pub struct Readers {
    readers: usize,
    rooms: usize,
    feeds: usize,
}

/// How many streams are read here, how many rooms are watched for them, and how many feeds others follow.
pub async fn readers(State(app): Shared) -> Json<Readers> {
    Json(Readers {
        readers: app.live.readers(),
        rooms: app.live.rooms(),
        feeds: app.live.feeds(),
    })
}

/// What is remembered here of an attempt.
pub async fn record(
    State(app): Shared,
    Address(attempt): Address<Uuid>,
) -> Result<Json<Record>, Problem> {
    let unknown = || Problem::not_found("that attempt is not remembered here");
    app.journal.record(attempt).map(Json).ok_or_else(unknown)
}
