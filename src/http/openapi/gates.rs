//! Gates: who waits there, and letting them go.

use axum::http::StatusCode;
use serde_json::json;
use utoipa::openapi::HttpMethod::{Get, Post};

use super::operation::{DATABASE, Operation};
use crate::http::gates::Waiting;
use crate::http::kind::Kind;

const TAG: &str = "Gates";
const PATH: &str = "/api/rooms/{room}/gates/{gate}";

pub(super) fn operations() -> Vec<Operation> {
    let waiting = Operation::new(Get, PATH, TAG, "Tells who waits at a gate")
        .about("Over all replicas; one that does not answer is left out.");
    let open = Operation::new(Post, PATH, TAG, "Opens a gate").about(
        "Lets go whoever waits there now, and tells who that was. An opening is not remembered.",
    );
    vec![gate(waiting), gate(open)]
}

fn gate(operation: Operation) -> Operation {
    let waiting = json!({"waiting": [
        {"attempt": "f2b4c1d0-53b1-4f0c-8a53-0d4c7a1b9e02", "replica": "A", "at": "before_write"},
    ]});
    operation
        .answers::<Waiting>(StatusCode::OK, "Who waited")
        .answered(
            "one-waits",
            "One attempt of replica A",
            StatusCode::OK,
            waiting,
        )
        .problems(&[Kind::NOT_FOUND])
        .problems(DATABASE)
}
