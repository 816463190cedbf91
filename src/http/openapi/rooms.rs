//! Rooms: show, make, change, reset, delete, audit.

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::openapi::HttpMethod::{Delete, Get, Patch, Post, Put};

use super::operation::{CHANGE, DATABASE, Operation};
use crate::audit::Audit;
use crate::http::kind::Kind;
use crate::room::{LayoutWish, ShownRoom, SwitchesPatch};

const TAG: &str = "Rooms";

pub(super) fn operations() -> Vec<Operation> {
    vec![show(), put(), delete(), switches(), reset(), audit()]
}

fn show() -> Operation {
    Operation::new(Get, "/api/rooms/{room}", TAG, "Shows a room")
        .about("Switches, epoch, seats, wallets and audit, all of one moment.")
        .answers::<ShownRoom>(StatusCode::OK, "The room")
        .answered(
            "shows-a-room",
            "A new room",
            StatusCode::OK,
            room(&json!({})),
        )
        .problems(&[Kind::NOT_FOUND])
        .problems(DATABASE)
}

fn put() -> Operation {
    Operation::new(Put, "/api/rooms/{room}", TAG, "Makes a room, or lays it out anew")
        .about("All switches get their defaults. Without a body, 5 rows of 8 seats and four wallets with 100.00 each.")
        .may_take::<LayoutWish>()
        .answers::<ShownRoom>(StatusCode::CREATED, "The room was made")
        .answers::<ShownRoom>(StatusCode::OK, "The room was there and is laid out anew")
        .asked(
            "lays-out-anew",
            "One row of two seats, one wallet",
            json!({"rows": 1, "columns": 2, "wallets": [{"name": "alice", "balance": "100.00"}]}),
        )
        .answered("lays-out-anew", "The room was there", StatusCode::OK, room(&json!({})))
        .asked("makes-a-room", "All that can be left out is", json!({}))
        .answered("makes-a-room", "The room was not there", StatusCode::CREATED, room(&json!({})))
        .asked("invalid-field", "No room has 101 rows", json!({"rows": 101}))
        .problems(CHANGE)
}

fn delete() -> Operation {
    Operation::new(Delete, "/api/rooms/{room}", TAG, "Deletes a room")
        .about("Gone with all that belongs to it. The room main stays.")
        .answers_nothing(StatusCode::NO_CONTENT, "The room is gone")
        .problems(&[Kind::NOT_FOUND, Kind::MAIN_STAYS])
        .problems(CHANGE)
}

fn switches() -> Operation {
    Operation::new(Patch, "/api/rooms/{room}/switches", TAG, "Changes switches")
        .about("Those that are named; all replicas obey them from the next attempt on. A real change raises the epoch.")
        .takes::<SwitchesPatch>()
        .answers::<ShownRoom>(StatusCode::OK, "The room")
        .asked("locking-off", "Locking off: the races happen", json!({"locking": false}))
        .answered("locking-off", "Locking is off", StatusCode::OK, room(&json!({"locking": false})))
        .asked(
            "textbook",
            "The lock table, fenced as textbooks draw it",
            json!({"lock": "table", "fencing": "on_write", "think_ms": 100}),
        )
        .answered(
            "textbook",
            "The room with these switches",
            StatusCode::OK,
            room(&json!({"lock": "table", "fencing": "on_write", "think_ms": 100})),
        )
        .asked("invalid-field", "A lease lasts at least 100 ms", json!({"ttl_ms": 99}))
        .problems(&[Kind::NOT_FOUND])
        .problems(CHANGE)
}

fn reset() -> Operation {
    Operation::new(Post, "/api/rooms/{room}/reset", TAG, "Resets a room")
        .about("Seats free, balances as opened, attempts gone. Raises the epoch.")
        .answers::<ShownRoom>(StatusCode::OK, "The room")
        .answered(
            "resets-a-room",
            "As it was opened",
            StatusCode::OK,
            room(&json!({})),
        )
        .problems(&[Kind::NOT_FOUND])
        .problems(CHANGE)
}

fn audit() -> Operation {
    Operation::new(Get, "/api/rooms/{room}/audit", TAG, "Audits a room")
        .about("What the database says about the invariants, from one snapshot. It can only say what was seen.")
        .answers::<Audit>(StatusCode::OK, "The audit")
        .answered("audits-a-room", "Nothing has happened", StatusCode::OK, clean_audit(0))
        .problems(&[Kind::NOT_FOUND])
        .problems(DATABASE)
}

/// A small room with these switches.
fn room(switches: &Value) -> Value {
    let mut all = json!({
        "locking": true, "lock": "redis", "fencing": "from_first_read", "compare": false, "order": "sorted",
        "release": "owner_checked", "waiting": "notify", "ttl_ms": 2000, "renew": true, "wait_ms": 5000,
        "think_ms": 0,
    });
    for (name, value) in switches.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    json!({
        "room": "workshop",
        "epoch": 12,
        "switches": all,
        "seats": [
            {"seat": "A1", "state": "free", "buyer": null},
            {"seat": "A2", "state": "free", "buyer": null},
        ],
        "wallets": [{"wallet": "alice", "balance": "100.00"}],
        "audit": clean_audit(0),
    })
}

/// The audit of a room in which nothing went wrong.
pub(super) fn clean_audit(attempts: u32) -> Value {
    json!({
        "clean": true, "sentence": format!("none seen in {attempts} attempts"), "attempts": attempts,
        "seats_sold_twice": [],
        "money": {"opened": "400.00", "now": "400.00", "difference": "0.00"},
        "wallets": [], "negative_wallets": [], "token_disorder": [], "leases_left": 0,
    })
}
