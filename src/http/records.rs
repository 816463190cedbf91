//! The bookings and transfers of a room as they are kept, page by page: for whoever checks what became of them.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;

use super::Shared;
use super::path::Address;
use super::problem::Problem;
use super::rooms::load_room;
use crate::booking::{self, BookingRecord};
use crate::database::REQUEST_LIMIT;
use crate::invalid::InvalidField;
use crate::wallet::{self, TransferRecord};

/// How many records one answer holds at most.
pub const MOST_RECORDS: i64 = 1000;

/// Where to read on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The number of the last record that was read.
    #[serde(default)]
    after: i64,
}

type Asked = Result<Query<After>, QueryRejection>;

/// `GET /api/rooms/{room}/bookings`
pub async fn bookings(
    State(app): Shared,
    Address(room): Address<String>,
    asked: Asked,
) -> Result<Json<Vec<BookingRecord>>, Problem> {
    let after = after(asked)?;
    let room = load_room(&app, &room).await?;
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let records = booking::records(&mut session, room.id, after, MOST_RECORDS).await?;
    Ok(Json(records))
}

/// `GET /api/rooms/{room}/transfers`
pub async fn transfers(
    State(app): Shared,
    Address(room): Address<String>,
    asked: Asked,
) -> Result<Json<Vec<TransferRecord>>, Problem> {
    let after = after(asked)?;
    let room = load_room(&app, &room).await?;
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let records = wallet::records(&mut session, room.id, after, MOST_RECORDS).await?;
    Ok(Json(records))
}

fn after(asked: Asked) -> Result<i64, Problem> {
    let wrong = |_| {
        InvalidField::new(
            "after",
            "must be the seq of a record, and is all that can be asked",
        )
    };
    let Query(After { after }) = asked.map_err(wrong)?;
    Ok(after)
}
