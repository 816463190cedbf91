//! What forms do. Each runs what the API runs and leads back to the room's page with 303, so that reload and back
//! repeat nothing.
//!
//! Bad input is answered as a page with its own status. An attempt that was refused is no bad input: its room's page
//! tells what became of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::address::{Place, Told};
use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::via;
use super::view::switch_value;
use crate::app::App;
use crate::database::REQUEST_LIMIT;
use crate::http::Shared;
use crate::http::attempts::{BookingBody, TransferBody, run_booking, run_transfer};
use crate::http::problem::Problem;
use crate::http::races::RaceBody;
use crate::http::rooms::{change_switches, reset_room};
use crate::race::{self, Race, RaceError};
use crate::room::{self, RoomName};

type Form = Result<Fields, Problem>;

/// `POST /rooms/{room}/switches`: any of the switches, each by its JSON name, and in `was` how they stood on the page.
pub async fn switches(State(app): Shared, place: Place, form: Form) -> Response {
    answer(&place, set_switches(&app, &place, form).await)
}

async fn set_switches(app: &App, place: &Place, form: Form) -> Result<String, Problem> {
    let patch = form?.changed()?.read_with(switch_value)?;
    change_switches(app, &place.room, patch).await?;
    Ok(place.page())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BookingForm {
    seat: String,
    buyer: String,
    via: Option<String>,
}

/// `POST /rooms/{room}/bookings`: `seat`, `buyer`, and `via` which replica, or `*` for all at once.
pub async fn book(State(app): Shared, place: Place, form: Form) -> Response {
    tell(&place, try_to_book(&app, &place.room, form).await)
}

async fn try_to_book(app: &Arc<App>, room: &RoomName, form: Form) -> Result<Told, Problem> {
    let BookingForm { seat, buyer, via } = form?.read()?;
    let attempts = match via::others(app, via) {
        Some(via) => {
            let body = json!({"seat": seat, "buyer": buyer});
            via::send(app, room, &via, "bookings", &body).await?
        }
        None => {
            let attempt = Uuid::new_v4();
            let order = BookingBody {
                seat,
                buyer: buyer.clone(),
                ..BookingBody::default()
            };
            let (result, _) = run_booking(app, room.as_str(), attempt, order).await;
            vec![told_by_its_room(attempt, result)?]
        }
    };
    let buyer = Some(buyer);
    Ok(Told { attempts, buyer })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferForm {
    from: String,
    to: String,
    amount: String,
    via: Option<String>,
}

/// `POST /rooms/{room}/transfers`: `from`, `to`, `amount`, and `via` as for a booking.
pub async fn transfer(State(app): Shared, place: Place, form: Form) -> Response {
    tell(&place, try_to_transfer(&app, &place.room, form).await)
}

async fn try_to_transfer(app: &Arc<App>, room: &RoomName, form: Form) -> Result<Told, Problem> {
    let TransferForm {
        from,
        to,
        amount,
        via,
    } = form?.read()?;
    let attempts = match via::others(app, via) {
        Some(via) => {
            let body = json!({"from": from, "to": to, "amount": amount});
            via::send(app, room, &via, "transfers", &body).await?
        }
        None => {
            let attempt = Uuid::new_v4();
            let order = TransferBody {
                from,
                to,
                amount,
                ..TransferBody::default()
            };
            let (result, _) = run_transfer(app, room.as_str(), attempt, order).await;
            vec![told_by_its_room(attempt, result)?]
        }
    };
    let buyer = None;
    Ok(Told { attempts, buyer })
}

/// `POST /rooms/{room}/races`: `race`. Who clicks twice sees the race that the first click began; who asked for another
/// one is told that it was not run.
pub async fn race(State(app): Shared, place: Place, form: Form) -> Response {
    answer(&place, run_race(&app, &place, form).await)
}

async fn run_race(app: &Arc<App>, place: &Place, form: Form) -> Result<String, Problem> {
    let RaceBody { race } = form?.read()?;
    match race::run(app, &place.room, race).await {
        Ok(_) => {}
        Err(RaceError::UnderWay) if has_run(app, &place.room, race).await? => {}
        Err(error) => return Err(error.into()),
    }
    Ok(place.page())
}

/// Waits for the end of the race under way and tells whether it was this one.
async fn has_run(app: &App, room: &RoomName, race: Race) -> Result<bool, Problem> {
    app.races.ended(room).await;
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let Some((room, _)) = room::store::load(&mut session, room, &[]).await? else {
        return Ok(false);
    };
    let last = race::last(&mut session, room.id).await?;
    Ok(last.is_some_and(|last| last.race == race))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetForm {}

/// `POST /rooms/{room}/reset`: no fields.
pub async fn reset(State(app): Shared, place: Place, form: Form) -> Response {
    answer(&place, run_reset(&app, &place, form).await)
}

async fn run_reset(app: &App, place: &Place, form: Form) -> Result<String, Problem> {
    let ResetForm {} = form?.read()?;
    reset_room(app, &place.room).await?;
    Ok(place.page())
}

/// `GET` of a form's address.
pub async fn back(place: Place) -> Redirect {
    Redirect::to(&place.page())
}

fn answer(place: &Place, done: Result<String, Problem>) -> Response {
    match done {
        Ok(page) => Redirect::to(&page).into_response(),
        Err(problem) => refuse(place, problem),
    }
}

/// Leads to the page that tells of attempts; a script is told which they are.
fn tell(place: &Place, done: Result<Told, Problem>) -> Response {
    match done {
        Ok(told) if place.by_script => Json(json!({"attempts": told.attempts})).into_response(),
        Ok(told) => Redirect::to(&place.page_of(&told)).into_response(),
        Err(problem) => refuse(place, problem),
    }
}

fn refuse(place: &Place, problem: Problem) -> Response {
    if place.by_script {
        problem.into_response()
    } else {
        ProblemPage::in_room(problem, place).into_response()
    }
}

/// The attempt, or the problem that kept it from being one.
fn told_by_its_room<T>(attempt: Uuid, result: Result<T, Problem>) -> Result<Uuid, Problem> {
    match result {
        Err(problem) if !is_told_by_its_room(&problem) => Err(problem.of(attempt)),
        _ => Ok(attempt),
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
