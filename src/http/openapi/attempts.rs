//! Bookings and transfers.

use axum::http::StatusCode;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::HttpMethod::{Get, Post};

use super::operation::{DATABASE, Operation};
use crate::booking::{Booking, BookingRecord};
use crate::http::attempts::{BookingBody, TransferBody};
use crate::http::kind::Kind;
use crate::wallet::{Transfer, TransferRecord};

/// How any attempt can end.
const ENDS: &[Kind] = &[
    Kind::NOT_FOUND,
    Kind::FAILPOINTS_OFF,
    Kind::LOCK_TIMEOUT,
    Kind::DEADLOCK,
    Kind::LOCK_UNAVAILABLE,
    Kind::STALE_TOKEN,
    Kind::ROW_CHANGED,
    Kind::SWITCHES_CHANGED,
    Kind::LEASE_LOST,
    Kind::OUTCOME_UNKNOWN,
    Kind::SHUTTING_DOWN,
    Kind::TOO_MANY_ATTEMPTS,
];

const LABEL: &str = "The answer carries the attempt's UUID: the client's, or a new one. It is a label and no \
                     idempotency key.";

pub(super) fn operations() -> Vec<Operation> {
    vec![book(), bookings(), transfer(), transfers()]
}

fn book() -> Operation {
    attempt::<BookingBody, Booking>("/api/rooms/{room}/bookings", "Books a seat")
        .asked("books-a-seat", "Ana books seat A1", json!({"seat": "A1", "buyer": "Ana"}))
        .answered(
            "books-a-seat",
            "It is hers",
            StatusCode::CREATED,
            json!({
                "id": "7c3f7a2e-8f0e-4f55-9d0b-0a6a7b7f3c11", "attempt": "f2b4c1d0-53b1-4f0c-8a53-0d4c7a1b9e02",
                "seat": "A1", "buyer": "Ana", "replica": "A", "lock": "redis", "epoch": 12, "token": 7,
            }),
        )
        .asked(
            "pauses",
            "The same with a label and a pause before the write, in which its renewal sleeps too",
            json!({
                "seat": "A1", "buyer": "Ana", "attempt": "0b0a3c52-6f0c-4a8e-9f8e-3f1f0d1c2b3a",
                "pause": {"at": "before_write", "ms": 50, "gate": "door", "freeze": true},
            }),
        )
        .answered(
            "pauses",
            "Nobody came in between",
            StatusCode::CREATED,
            json!({
                "id": "2f3f9d0a-3f39-4d51-8a0e-7b6a5d4c3b2a", "attempt": "0b0a3c52-6f0c-4a8e-9f8e-3f1f0d1c2b3a",
                "seat": "A1", "buyer": "Ana", "replica": "A", "lock": "redis", "epoch": 12, "token": 8,
            }),
        )
        .asked("invalid-field", "A buyer has a name", json!({"seat": "A1", "buyer": ""}))
        .asked("not-found", "There is no such seat", json!({"seat": "Z99", "buyer": "Ana"}))
        .problems(&[Kind::SEAT_TAKEN])
}

fn bookings() -> Operation {
    records::<BookingRecord>("/api/rooms/{room}/bookings", "Lists the bookings of a room")
        .answered(
            "lists-bookings",
            "Ana has seat A1",
            StatusCode::OK,
            json!([{
                "seq": 41, "id": "7c3f7a2e-8f0e-4f55-9d0b-0a6a7b7f3c11",
                "attempt": "f2b4c1d0-53b1-4f0c-8a53-0d4c7a1b9e02", "seat": "A1", "buyer": "Ana", "replica": "A",
                "lock": "redis", "epoch": 12, "token": 7, "version_read": 12, "version_written": 13,
            }]),
        )
}

fn transfers() -> Operation {
    records::<TransferRecord>("/api/rooms/{room}/transfers", "Lists the transfers of a room")
        .answered(
            "lists-transfers",
            "alice gave 80.00 to bob",
            StatusCode::OK,
            json!([{
                "seq": 42, "id": "91a1b1f4-0b7a-4c0f-8d3e-5a4b3c2d1e0f",
                "attempt": "c1d2e3f4-a5b6-4c7d-8e9f-0a1b2c3d4e5f", "from": "alice", "to": "bob", "amount": "80.00",
                "replica": "A", "lock": "redis", "epoch": 12, "from_version_read": 12, "from_version_written": 13,
                "to_version_read": 12, "to_version_written": 13,
            }]),
        )
}

fn records<R: ToSchema>(path: &'static str, summary: &str) -> Operation {
    Operation::new(Get, path, "Attempts", summary)
        .about(
            "As they are kept, in the order of their numbers, at most 1000 at once. The number of the last one as \
             after brings those that follow. One that drew its number earlier may be committed later, so all are \
             there only when no attempt is under way.",
        )
        .may_ask("after", "The number (seq) of the last record that was read.")
        .answers_list::<R>(StatusCode::OK, "The records")
        .problems(&[Kind::NOT_FOUND, Kind::INVALID_FIELD])
        .problems(DATABASE)
}

fn transfer() -> Operation {
    attempt::<TransferBody, Transfer>("/api/rooms/{room}/transfers", "Moves money from one wallet to another")
        .asked("moves-money", "alice gives 80.00 to bob", json!({"from": "alice", "to": "bob", "amount": "80.00"}))
        .answered(
            "moves-money",
            "It was moved",
            StatusCode::CREATED,
            json!({
                "id": "91a1b1f4-0b7a-4c0f-8d3e-5a4b3c2d1e0f", "attempt": "c1d2e3f4-a5b6-4c7d-8e9f-0a1b2c3d4e5f",
                "from": "alice", "to": "bob", "amount": "80.00", "replica": "A", "lock": "redis", "epoch": 12,
                "tokens": {"alice": 7, "bob": 3},
            }),
        )
        .asked(
            "insufficient-funds",
            "She does not have that much",
            json!({"from": "alice", "to": "bob", "amount": "500.00"}),
        )
        .asked("invalid-field", "Money is never rounded", json!({"from": "alice", "to": "bob", "amount": "0.001"}))
        .asked("not-found", "There is no such wallet", json!({"from": "alice", "to": "zoe", "amount": "1.00"}))
        .problems(&[Kind::INSUFFICIENT_FUNDS])
}

fn attempt<B: ToSchema, A: ToSchema>(path: &'static str, summary: &str) -> Operation {
    Operation::new(Post, path, "Attempts", summary)
        .about(LABEL)
        .takes::<B>()
        .answers::<A>(StatusCode::CREATED, "Committed")
        .problems(ENDS)
        .problems(DATABASE)
        .with_header(
            "Server-Timing",
            "wait, hold and work in milliseconds, and the trips to the lock system.",
        )
}
