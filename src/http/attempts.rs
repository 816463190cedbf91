//! Bookings and transfers: parse the request into an order, run the use case, answer with its timing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Shared;
use super::body::JsonBody;
use super::path::Address;
use super::problem::{Outcome, Problem};
use super::rooms::room_name;
use crate::app::App;
use crate::booking::{self, Booking};
use crate::invalid::{InvalidField, optional_object};
use crate::name::{Name, NotAName};
use crate::section::{self, End, Failpoint, Intent, Kind, LONGEST_PAUSE_MS, Timing};
use crate::wallet::{self, Money, NotMoney, Transfer};

/// The body of a booking.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BookingBody {
    /// The seat.
    pub seat: String,
    /// The buyer.
    pub buyer: String,
    /// The client's own label for the attempt: a UUID.
    pub attempt: Option<String>,
    /// Where the attempt is to wait.
    #[serde(default, deserialize_with = "optional_object")]
    pub pause: Option<Failpoint>,
}

/// The body of a transfer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferBody {
    /// The giver.
    pub from: String,
    /// The taker.
    pub to: String,
    /// How much.
    pub amount: String,
    /// The client's own label for the attempt: a UUID.
    pub attempt: Option<String>,
    /// Where the attempt is to wait.
    #[serde(default, deserialize_with = "optional_object")]
    pub pause: Option<Failpoint>,
}

/// `POST /api/rooms/{room}/bookings`
pub async fn book(
    State(app): Shared,
    Address(room): Address<String>,
    body: Result<JsonBody<BookingBody>, Problem>,
) -> Response {
    let (attempt, body) = with_attempt(body, |body| &body.attempt);
    let (result, timing) = match body {
        Ok(body) => run_booking(&app, &room, attempt, body).await,
        Err(problem) => (Err(problem), Timing::default()),
    };
    answer(attempt, result, timing)
}

/// `POST /api/rooms/{room}/transfers`
pub async fn transfer(
    State(app): Shared,
    Address(room): Address<String>,
    body: Result<JsonBody<TransferBody>, Problem>,
) -> Response {
    let (attempt, body) = with_attempt(body, |body| &body.attempt);
    let (result, timing) = match body {
        Ok(body) => run_transfer(&app, &room, attempt, body).await,
        Err(problem) => (Err(problem), Timing::default()),
    };
    answer(attempt, result, timing)
}

/// Books, for the API and the page alike.
pub async fn run_booking(
    app: &Arc<App>,
    room: &str,
    attempt: Uuid,
    body: BookingBody,
) -> (Result<Booking, Problem>, Timing) {
    let (intent, order) = match booking_order(room, attempt, body) {
        Ok(parsed) => parsed,
        Err(problem) => return (Err(problem), Timing::default()),
    };
    let walk = move |attempt: Arc<section::Attempt>| async move {
        let booked = booking::book(&attempt, &order).await;
        booked.map_err(|error| {
            let problem = attempt.in_its_name(|| Problem::from(error));
            problem.naming(|_| "seat")
        })
    };
    section::run(
        Arc::clone(app),
        intent,
        |result| end(result, "booked"),
        walk,
    )
    .await
}

/// Transfers, for the API and the page alike.
pub async fn run_transfer(
    app: &Arc<App>,
    room: &str,
    attempt: Uuid,
    body: TransferBody,
) -> (Result<Transfer, Problem>, Timing) {
    let (intent, order) = match transfer_order(room, attempt, body) {
        Ok(parsed) => parsed,
        Err(problem) => return (Err(problem), Timing::default()),
    };
    let walk = move |attempt: Arc<section::Attempt>| async move {
        let moved = wallet::transfer(&attempt, &order).await;
        let field = |wallet: &str| {
            if wallet == order.from.as_str() {
                "from"
            } else {
                "to"
            }
        };
        moved.map_err(|error| {
            let problem = attempt.in_its_name(|| Problem::from(error));
            problem.naming(field)
        })
    };
    section::run(
        Arc::clone(app),
        intent,
        |result| end(result, "transferred"),
        walk,
    )
    .await
}

fn booking_order(
    room: &str,
    attempt: Uuid,
    body: BookingBody,
) -> Result<(Intent, booking::Order), Problem> {
    let room = room_name(room)?;
    let order = booking::Order {
        seat: name("seat", &body.seat)?,
        buyer: name("buyer", &body.buyer)?,
    };
    let what = format!("{} books {}", order.buyer, order.seat);
    let intent = Intent {
        attempt,
        kind: Kind::Booking,
        room,
        who: order.buyer.to_string(),
        what,
        pause: pause(body.pause)?,
    };
    Ok((intent, order))
}

fn transfer_order(
    room: &str,
    attempt: Uuid,
    body: TransferBody,
) -> Result<(Intent, wallet::Order), Problem> {
    let room = room_name(room)?;
    let order = wallet::Order {
        from: name("from", &body.from)?,
        to: name("to", &body.to)?,
        amount: amount(&body.amount)?,
    };
    if order.from == order.to {
        return Err(InvalidField::new("to", "must be another wallet than from").into());
    }
    let what = format!("{} gives {} to {}", order.from, order.amount, order.to);
    let intent = Intent {
        attempt,
        kind: Kind::Transfer,
        room,
        who: order.from.to_string(),
        what,
        pause: pause(body.pause)?,
    };
    Ok((intent, order))
}

fn name(field: &str, text: &str) -> Result<Name, InvalidField> {
    text.parse()
        .map_err(|error: NotAName| InvalidField::new(field, error.to_string()))
}

fn amount(text: &str) -> Result<Money, InvalidField> {
    let amount: Money = text
        .parse()
        .map_err(|error: NotMoney| InvalidField::new("amount", error.to_string()))?;
    if amount == Money::ZERO {
        return Err(InvalidField::new("amount", "must be above 0"));
    }
    Ok(amount)
}

fn pause(pause: Option<Failpoint>) -> Result<Option<Failpoint>, InvalidField> {
    match &pause {
        Some(asked) if asked.ms > LONGEST_PAUSE_MS => Err(InvalidField::new(
            "pause.ms",
            format!("must be 0 to {LONGEST_PAUSE_MS}"),
        )),
        _ => Ok(pause),
    }
}

/// The attempt's UUID: the client's label, or one of ours; every answer carries it.
fn with_attempt<T>(
    body: Result<JsonBody<T>, Problem>,
    label: impl FnOnce(&T) -> &Option<String>,
) -> (Uuid, Result<T, Problem>) {
    let ours = Uuid::new_v4();
    let body = match body {
        Ok(JsonBody(body)) => body,
        Err(problem) => return (ours, Err(problem)),
    };
    match label(&body).as_deref().map(Uuid::try_parse) {
        None => (ours, Ok(body)),
        Some(Ok(theirs)) => (theirs, Ok(body)),
        Some(Err(_)) => (
            ours,
            Err(InvalidField::new("attempt", "must be a UUID").into()),
        ),
    }
}

/// How an attempt ended, in one word, and why it certainly did not happen.
fn end<T>(result: &Result<T, Problem>, success: &str) -> End {
    match result {
        Ok(_) => End {
            word: success.to_owned(),
            why_not: None,
        },
        Err(problem) => End {
            word: problem.word.to_owned(),
            why_not: (problem.outcome == Outcome::DidNotHappen).then(|| problem.detail.clone()),
        },
    }
}

fn answer<T: Serialize>(attempt: Uuid, result: Result<T, Problem>, timing: Timing) -> Response {
    let mut response = match result {
        Ok(made) => (StatusCode::CREATED, Json(made)).into_response(),
        Err(problem) => problem.of(attempt).into_response(),
    };
    response.headers_mut().insert(
        HeaderName::from_static("server-timing"),
        server_timing(timing),
    );
    response
}

/// See <https://www.w3.org/TR/server-timing/>; durations are milliseconds.
fn server_timing(timing: Timing) -> HeaderValue {
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1000.0;
    let text = format!(
        "wait;dur={:.3}, hold;dur={:.3}, work;dur={:.3}, trips;desc=\"{}\"",
        ms(timing.wait),
        ms(timing.hold),
        ms(timing.work),
        timing.trips
    );
    // Numbers and plain words always make a header.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}
