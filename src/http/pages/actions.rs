//! What forms do. Each runs what the API runs and leads back to the room's page with 303, so that reload and back
//! repeat nothing.
//!
//! Bad input is answered as a page with its own status. An attempt that was refused is no bad input: its room's page
//! tells what became of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use uuid::Uuid;

use super::address::{self, InRoom};
use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::view::switch_value;
use crate::app::App;
use crate::http::Shared;
use crate::http::attempts::{BookingBody, TransferBody, run_booking, run_transfer};
use crate::http::problem::Problem;
use crate::http::races::RaceBody;
use crate::http::rooms::{change_switches, reset_room};
use crate::race::{self, RaceError};
use crate::room::RoomName;

type Form = Result<Fields, Problem>;

/// `POST /rooms/{room}/switches`: any of the switches, each by its JSON name.
pub async fn switches(State(app): Shared, InRoom(room): InRoom, form: Form) -> Response {
    answer(&room, set_switches(&app, &room, form).await)
}

async fn set_switches(app: &App, room: &RoomName, form: Form) -> Result<String, Problem> {
    let patch = form?.read_with(switch_value)?;
    change_switches(app, room, patch).await?;
    Ok(address::of(room))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BookingForm {
    seat: String,
    buyer: String,
}

/// `POST /rooms/{room}/bookings`: `seat`, `buyer`.
pub async fn book(State(app): Shared, InRoom(room): InRoom, form: Form) -> Response {
    answer(&room, try_to_book(&app, &room, form).await)
}

async fn try_to_book(app: &Arc<App>, room: &RoomName, form: Form) -> Result<String, Problem> {
    let BookingForm { seat, buyer } = form?.read()?;
    let page = |attempt| address::of_booking(room, attempt, &buyer);
    let attempt = Uuid::new_v4();
    let order = BookingBody {
        seat,
        buyer: buyer.clone(),
        ..BookingBody::default()
    };
    let (result, _) = run_booking(app, room.as_str(), attempt, order).await;
    told_by(page(attempt), attempt, result)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferForm {
    from: String,
    to: String,
    amount: String,
}

/// `POST /rooms/{room}/transfers`: `from`, `to`, `amount`.
pub async fn transfer(State(app): Shared, InRoom(room): InRoom, form: Form) -> Response {
    answer(&room, try_to_transfer(&app, &room, form).await)
}

async fn try_to_transfer(app: &Arc<App>, room: &RoomName, form: Form) -> Result<String, Problem> {
    let TransferForm { from, to, amount } = form?.read()?;
    let attempt = Uuid::new_v4();
    let order = TransferBody {
        from,
        to,
        amount,
        ..TransferBody::default()
    };
    let (result, _) = run_transfer(app, room.as_str(), attempt, order).await;
    told_by(address::of_attempt(room, attempt), attempt, result)
}

/// `POST /rooms/{room}/races`: `race`. Who clicks twice sees the race that the first click began.
pub async fn race(State(app): Shared, InRoom(room): InRoom, form: Form) -> Response {
    answer(&room, run_race(&app, &room, form).await)
}

async fn run_race(app: &Arc<App>, room: &RoomName, form: Form) -> Result<String, Problem> {
    let RaceBody { race } = form?.read()?;
    match race::run(app, room, race).await {
        Ok(_) => {}
        Err(RaceError::UnderWay) => app.races.ended(room).await,
        Err(error) => return Err(error.into()),
    }
    Ok(address::of(room))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetForm {}

/// `POST /rooms/{room}/reset`: no fields.
pub async fn reset(State(app): Shared, InRoom(room): InRoom, form: Form) -> Response {
    answer(&room, run_reset(&app, &room, form).await)
}

async fn run_reset(app: &App, room: &RoomName, form: Form) -> Result<String, Problem> {
    let ResetForm {} = form?.read()?;
    reset_room(app, room).await?;
    Ok(address::of(room))
}

/// `GET` of a form's address.
pub async fn back(InRoom(room): InRoom) -> Redirect {
    Redirect::to(&address::of(&room))
}

fn answer(room: &RoomName, done: Result<String, Problem>) -> Response {
    match done {
        Ok(page) => Redirect::to(&page).into_response(),
        Err(problem) => ProblemPage::in_room(problem, room).into_response(),
    }
}

/// The page that tells of an attempt, or the problem that kept it from being one.
fn told_by<T>(page: String, attempt: Uuid, result: Result<T, Problem>) -> Result<String, Problem> {
    match result {
        Err(problem) if !is_told_by_its_room(&problem) => Err(problem.of(attempt)),
        _ => Ok(page),
    }
}

/// Whether a problem is what became of a well-formed attempt, on a replica that will still answer.
fn is_told_by_its_room(problem: &Problem) -> bool {
    match problem.word {
        "insufficient-funds" | "outcome-unknown" => true,
        "shutting-down" => false,
        _ => matches!(problem.status, 409 | 503),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::booking::BookingError;
    use crate::invalid::InvalidField;
    use crate::section::SectionError;

    #[test]
    fn a_refused_attempt_is_told_by_its_room_and_bad_input_is_not() {
        let told = |problem: Problem| is_told_by_its_room(&problem);
        let taken = BookingError::SeatTaken {
            seat: "A1".to_owned(),
            buyer: "Ana".to_owned(),
        };
        assert!(told(taken.into()));
        assert!(told(SectionError::LeaseLost.into()));
        assert!(told(SectionError::DatabaseBusy(String::new()).into()));
        assert!(told(SectionError::OutcomeUnknown(String::new()).into()));
        assert!(!told(SectionError::ShuttingDown.into()));
        assert!(!told(SectionError::NotFound("seat".to_owned()).into()));
        assert!(!told(InvalidField::new("seat", "is wrong").into()));
    }
}
