//! The stream of a room, for pages and for whoever else likes to see what happens.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::path::Address;
use super::problem::Problem;
use super::rooms::{load_room, room_name};
use crate::live;
use crate::peers;
use crate::section::SectionError;

/// Nothing on the way may keep events back or change them: no cache, no compression, no buffer of a proxy.
const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/event-stream"),
    (header::CACHE_CONTROL, "no-store, no-transform"),
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

/// `GET /api/rooms/{room}/live`
pub async fn live(
    State(app): Shared,
    method: Method,
    Address(room): Address<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let room = load_room(&app, &room).await?;
    if method == Method::HEAD {
        return Ok((HEADERS, Body::empty()).into_response());
    }
    if app.shutdown.has_begun() {
        return Err(SectionError::ShuttingDown.into());
    }
    let last = headers.get("last-event-id");
    let last = last.map(|id| id.to_str().unwrap_or_default());
    let reader = live::read(&app, room.name, room.epoch, last)?;
    Ok((HEADERS, Body::from_stream(reader.stream())).into_response())
}

/// `GET /peer/feed/{room}`: what another replica hears of a room on this one.
pub async fn feed(
    State(app): Shared,
    method: Method,
    Address(room): Address<String>,
) -> Result<Response, Problem> {
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    if method == Method::HEAD {
        return Ok((kind, Body::empty()).into_response());
    }
    let room = room_name(&room)?;
    let place = app.live.feed()?;
    let lines = peers::feed::lines(Arc::clone(&app), room.to_string(), place);
    Ok((kind, Body::from_stream(lines)).into_response())
}
