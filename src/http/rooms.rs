//! Rooms: show, make, change, reset, delete, audit.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::body::{JsonBody, OptionalJsonBody};
use super::kind::Kind;
use super::path::Address;
use super::problem::Problem;
use crate::app::App;
use crate::audit::Audit;
use crate::database::REQUEST_LIMIT;
use crate::invalid::InvalidField;
use crate::peers;
use crate::room::{
    self, Change, Changed, Layout, LayoutWish, Room, RoomName, ShownRoom, Switches, SwitchesPatch,
};

/// The room of an address. A name that cannot be one is simply not there.
pub fn room_name(text: &str) -> Result<RoomName, Problem> {
    text.parse().map_err(|_| no_room(text))
}

/// The room of an address, if it is there.
pub async fn load_room(app: &App, text: &str) -> Result<Room, Problem> {
    let name = room_name(text)?;
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    match room::store::load(&mut session, &name, &[]).await? {
        Some((room, _)) => Ok(room),
        None => Err(no_room(name)),
    }
}

/// The name of the room of an address, if it is there.
pub async fn existing_room(app: &App, text: &str) -> Result<RoomName, Problem> {
    Ok(load_room(app, text).await?.name)
}

fn no_room(name: impl std::fmt::Display) -> Problem {
    Problem::not_found(format!("there is no room {name}"))
}

/// `GET /api/rooms/{room}`
pub async fn show(
    State(app): Shared,
    Address(room): Address<String>,
) -> Result<Json<ShownRoom>, Problem> {
    shown(&app, &room_name(&room)?).await.map(Json)
}

/// The room after it was changed: if it cannot be shown any more, the change happened all the same.
async fn shown_after(app: &App, name: &RoomName) -> Result<ShownRoom, Problem> {
    shown(app, name).await.map_err(Problem::after_a_change)
}

/// The room as it is shown, all of one moment.
pub async fn shown(app: &App, name: &RoomName) -> Result<ShownRoom, Problem> {
    let others = peers::others(app).await?;
    let leases_left = peers::leases_left(app, &others, name.as_str()).await;
    let mut snapshot = app.database.snapshot(REQUEST_LIMIT).await?;
    let Some((room, _)) = room::store::load(&mut snapshot, name, &[]).await? else {
        return Err(no_room(name));
    };
    let shown = ShownRoom {
        room: name.to_string(),
        epoch: room.epoch,
        switches: room.switches,
        seats: room::store::seats(&mut snapshot, room.id).await?,
        wallets: room::store::wallets(&mut snapshot, room.id).await?,
        audit: crate::audit::audit(&mut snapshot, room.id, leases_left).await?,
    };
    snapshot.rollback().await;
    Ok(shown)
}

/// `PUT /api/rooms/{room}`
pub async fn put(
    State(app): Shared,
    Address(room): Address<String>,
    body: Result<OptionalJsonBody<LayoutWish>, Problem>,
) -> Result<Response, Problem> {
    let name: RoomName = room
        .parse()
        .map_err(|error: room::NotARoomName| InvalidField::new("room", error.to_string()))?;
    let layout = Layout::try_from(body?.0)?;
    let lock = app.locks.default_lock();
    let switches = if name.is_main() {
        Switches::for_people(lock)
    } else {
        Switches::on(lock)
    };
    let status = match change(&app, &name, Change::LayOut(layout, switches)).await? {
        Changed::Made => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    Ok((status, Json(shown_after(&app, &name).await?)).into_response())
}

/// `PATCH /api/rooms/{room}/switches`
pub async fn switches(
    State(app): Shared,
    Address(room): Address<String>,
    body: Result<JsonBody<SwitchesPatch>, Problem>,
) -> Result<Json<ShownRoom>, Problem> {
    let name = room_name(&room)?;
    change_switches(&app, &name, body?.0).await?;
    shown_after(&app, &name).await.map(Json)
}

/// Changes switches, for the API and the page alike.
pub async fn change_switches(
    app: &App,
    name: &RoomName,
    patch: SwitchesPatch,
) -> Result<(), Problem> {
    patch.check()?;
    let why_not = |lock| Some((lock, app.locks.why_not(lock)?));
    if let Some((lock, why)) = patch.lock.and_then(why_not) {
        return Err(
            InvalidField::new("lock", format!("{lock} cannot be chosen here: {why}")).into(),
        );
    }
    change(app, name, Change::Switch(patch)).await.map(drop)
}

/// `POST /api/rooms/{room}/reset`
pub async fn reset(
    State(app): Shared,
    Address(room): Address<String>,
) -> Result<Json<ShownRoom>, Problem> {
    let name = room_name(&room)?;
    reset_room(&app, &name).await?;
    shown_after(&app, &name).await.map(Json)
}

/// Resets a room, for the API and the page alike.
pub async fn reset_room(app: &App, name: &RoomName) -> Result<(), Problem> {
    change(app, name, Change::Reset).await.map(drop)
}

/// `DELETE /api/rooms/{room}`
pub async fn delete(
    State(app): Shared,
    Address(room): Address<String>,
) -> Result<StatusCode, Problem> {
    let name = room_name(&room)?;
    if name.is_main() {
        let detail = "the room main always exists; reset it, or PUT it anew";
        return Err(Problem::new(Kind::MAIN_STAYS, detail));
    }
    change(&app, &name, Change::Delete).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/rooms/{room}/audit`
pub async fn audit(
    State(app): Shared,
    Address(room): Address<String>,
) -> Result<Json<Audit>, Problem> {
    let name = room_name(&room)?;
    let others = peers::others(&app).await?;
    let leases_left = peers::leases_left(&app, &others, name.as_str()).await;
    let mut snapshot = app.database.snapshot(REQUEST_LIMIT).await?;
    let Some((room, _)) = room::store::load(&mut snapshot, &name, &[]).await? else {
        return Err(no_room(name));
    };
    let audit = crate::audit::audit(&mut snapshot, room.id, leases_left).await?;
    snapshot.rollback().await;
    Ok(Json(audit))
}

/// Changes a room that must be there, or is made by the change.
async fn change(app: &App, name: &RoomName, change: Change) -> Result<Changed, Problem> {
    match room::change(&app.database, name, &change).await? {
        Changed::NoSuchRoom => Err(no_room(name)),
        changed => {
            app.journal.room_changed(name.as_str());
            Ok(changed)
        }
    }
}
