//! The address of a room's page, read and written.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use super::ProblemPage;
use crate::http::problem::Problem;
use crate::http::rooms::room_name;
use crate::room::RoomName;

/// The room that an address names.
#[derive(Debug)]
pub struct InRoom(pub RoomName);

impl<S: Send + Sync> FromRequestParts<S> for InRoom {
    type Rejection = ProblemPage;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemPage> {
        let Ok(Path(name)) = Path::<String>::from_request_parts(parts, state).await else {
            return Err(Problem::not_found("this address names no room").into());
        };
        Ok(Self(room_name(&name)?))
    }
}

/// The page of a room.
pub fn of(room: &RoomName) -> String {
    format!("/rooms/{room}")
}

/// The page of a room that tells what became of an attempt.
pub fn of_attempt(room: &RoomName, attempt: Uuid) -> String {
    format!("/rooms/{room}?attempt={attempt}#attempt")
}

/// The same, and the page remembers the buyer.
pub fn of_booking(room: &RoomName, attempt: Uuid, buyer: &str) -> String {
    let buyer = utf8_percent_encode(buyer, NON_ALPHANUMERIC);
    format!("/rooms/{room}?attempt={attempt}&buyer={buyer}#attempt")
}
