//! Races, and what is left of the last one.

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::openapi::HttpMethod::{Get, Post};

use super::operation::{CHANGE, DATABASE, Operation};
use super::rooms::clean_audit;
use crate::http::kind::Kind;
use crate::http::races::RaceBody;
use crate::race::{LastRace, RaceResult};

const TAG: &str = "Races";

pub(super) fn operations() -> Vec<Operation> {
    vec![race(), last(), live()]
}

fn race() -> Operation {
    Operation::new(Post, "/api/rooms/{room}/races", TAG, "Runs a race")
        .about(
            "Resets the room, then sends real requests to the replicas so that they meet. Answers what each attempt \
             got, and the audit after. outcome is booked, transferred or the last word of a problem's type.",
        )
        .takes::<RaceBody>()
        .answers::<RaceResult>(StatusCode::OK, "What each attempt got")
        .asked("one-seat", "Two buyers, one seat", json!({"race": "one-seat"}))
        .answered(
            "one-seat",
            "One got it",
            StatusCode::OK,
            json!({
                "race": "one-seat",
                "attempts": [raced("A", "Ana", 201, "booked"), raced("B", "Ben", 409, "seat-taken")],
                "audit": clean_audit(1),
            }),
        )
        .asked("lost-update", "Two transfers of 80 from 100", json!({"race": "lost-update"}))
        .answered(
            "lost-update",
            "One was moved",
            StatusCode::OK,
            json!({
                "race": "lost-update",
                "attempts": [
                    raced("A", "alice", 201, "transferred"),
                    raced("B", "alice", 422, "insufficient-funds"),
                ],
                "audit": clean_audit(1),
            }),
        )
        .asked("invalid-field", "There is no such race", json!({"race": "relay"}))
        .problems(&[Kind::NOT_FOUND, Kind::RACE_NEEDS, Kind::RACE_UNDER_WAY, Kind::SHUTTING_DOWN])
        .problems(&[Kind::FAILPOINTS_OFF])
        .problems(CHANGE)
}

fn last() -> Operation {
    Operation::new(Get, "/api/rooms/{room}/races/last", TAG, "Tells of the last race")
        .about("With the steps of its attempts, as far as their replicas still told them.")
        .answers::<LastRace>(StatusCode::OK, "The last race since the last reset")
        .answered(
            "last-race",
            "One got it",
            StatusCode::OK,
            json!({
                "race": "one-seat",
                "attempts": [raced("A", "Ana", 201, "booked"), raced("B", "Ben", 409, "seat-taken")],
                "sentence": "none seen in 1 attempts", "clean": true,
                "records": [{
                    "attempt": "f2b4c1d0-53b1-4f0c-8a53-0d4c7a1b9e02", "replica": "A", "room": "workshop", "who": "Ana",
                    "what": "Ana books A1", "outcome": "booked",
                    "steps": [{"at_ms": 1764424800000.0, "kind": "asked", "key": "seat A1", "detail": "asks redis"}],
                }],
            }),
        )
        .problems(&[Kind::NOT_FOUND])
        .problems(DATABASE)
}

fn live() -> Operation {
    let first = "id: 00000193a2b4c5d6-41\nevent: hello\n\
                 data: {\"replica\":\"A\",\"room\":\"workshop\",\"now_ms\":1764424800000.0,\"epoch\":12}\n\n";
    Operation::new(Get, "/api/rooms/{room}/live", TAG, "Tells what happens, as it happens")
        .about(
            "A stream of server-sent events, each with JSON as its data: hello first; step, ended and race of all \
             replicas in the order of time; seats, wallets, audit and switches where they changed; replicas when one \
             comes or goes, untold when one could not tell all. Who comes back with the id of the last event gets what \
             came after it, or gap: then load the room again. Something is said at least every 10 seconds.",
        )
        .may_send("Last-Event-ID", "The id of the last event that was read.")
        .answers_text("text/event-stream", "The stream")
        .answered("live", "The first event", StatusCode::OK, first)
        .problems(&[Kind::NOT_FOUND, Kind::SHUTTING_DOWN, Kind::TOO_MANY_READERS])
        .problems(DATABASE)
}

fn raced(replica: &str, buyer: &str, status: u16, outcome: &str) -> Value {
    let token = (status == 201).then_some(7);
    json!({
        "attempt": "f2b4c1d0-53b1-4f0c-8a53-0d4c7a1b9e02", "replica": replica, "buyer": buyer, "status": status,
        "outcome": outcome, "token": token, "ms": 12.5,
    })
}
