//! Races.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Shared;
use super::body::JsonBody;
use super::path::Address;
use super::problem::Problem;
use super::rooms::room_name;
use crate::race::{self, Race, RaceResult};

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
