//! The replicas, and the lock systems with their guarantees.

use axum::http::StatusCode;
use serde_json::json;
use utoipa::openapi::HttpMethod::Get;

use super::operation::{DATABASE, Operation};
use crate::http::replicas::ShownLock;
use crate::lock::LockName;
use crate::peers::Replica;

const TAG: &str = "Replicas";

pub(super) fn operations() -> Vec<Operation> {
    vec![replicas(), locks()]
}

fn replicas() -> Operation {
    Operation::new(Get, "/api/replicas", TAG, "Lists the replicas")
        .about("Each is asked just now whether it is alive. last_seen is in milliseconds since 1970.")
        .answers_list::<Replica>(StatusCode::OK, "The replicas by name")
        .answered(
            "two-replicas",
            "One of them does not answer",
            StatusCode::OK,
            json!([
                {"name": "A", "url": "http://127.0.0.1:3001", "pid": 4711, "alive": true, "last_seen": 1764424800000.0},
                {"name": "B", "url": "http://127.0.0.1:3002", "pid": 4712, "alive": false, "last_seen": null},
            ]),
        )
        .problems(DATABASE)
}

fn locks() -> Operation {
    let guarantees = |lock: LockName| serde_json::to_value(lock.guarantees()).unwrap_or_default();
    Operation::new(Get, "/api/locks", TAG, "Lists the lock systems")
        .about("Whether each can be chosen on this replica, and what it guarantees.")
        .answers_list::<ShownLock>(StatusCode::OK, "All lock systems")
        .answered(
            "lock-systems",
            "One that can be chosen, one that cannot",
            StatusCode::OK,
            json!([
                {"lock": "table", "available": true, "why_not": null, "guarantees": guarantees(LockName::Table)},
                {
                    "lock": "redis", "available": false, "why_not": "not configured: REDIS_URL is not set",
                    "guarantees": guarantees(LockName::Redis),
                },
            ]),
        )
}
