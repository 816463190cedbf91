//! Races.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Shared;
use super::body::JsonBody;
use super::path::Address;
use super::problem::Problem;
use super::rooms::{load_room, room_name};
use crate::database::REQUEST_LIMIT;
use crate::race::{self, LastRace, Race, RaceResult};

/// The body of a race.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RaceBody {
    /// Which race.
    pub race: Race,
}

/// `POST /api/rooms/{room}/races`
pub async fn race(
    State(app): Shared,
    Address(room): Address<String>,
    body: Result<JsonBody<RaceBody>, Problem>,
) -> Result<Json<RaceResult>, Problem> {
    let name = room_name(&room)?;
    let JsonBody(body) = body?;
    Ok(Json(race::run(&app, &name, body.race).await?))
}

/// `GET /api/rooms/{room}/races/last`: the last race since the room's last reset, with the steps of its attempts.
pub async fn last(
    State(app): Shared,
    Address(room): Address<String>,
) -> Result<Json<LastRace>, Problem> {
    let room = load_room(&app, &room).await?;
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let last = race::last(&mut session, room.id).await?;
    let none = || Problem::not_found("no race was run in this room since its last reset");
    last.map(Json).ok_or_else(none)
}
