//! What is asked by whoever operates a replica.

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::openapi::HttpMethod::Get;

use super::operation::{DATABASE, Operation};
use crate::http::kind::Kind;

const TAG: &str = "Health";
const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn operations() -> Vec<Operation> {
    vec![alive(), ready(), metrics(), document()]
}

fn alive() -> Operation {
    Operation::new(Get, "/healthz", TAG, "Tells that the process answers")
        .answers_text(TEXT, "It is alive")
        .answered("alive", "It is alive", StatusCode::OK, "alive\n")
}

fn ready() -> Operation {
    Operation::new(Get, "/readyz", TAG, "Tells whether the replica can work")
        .about("The database can be reached, and the replica is not stopping.")
        .answers_text(TEXT, "It can work")
        .answered("ready", "It can work", StatusCode::OK, "ready\n")
        .problems(&[Kind::SHUTTING_DOWN])
        .problems(DATABASE)
}

fn metrics() -> Operation {
    let example = "# HELP doublebook_attempts_under_way Attempts under way now.\n\
                   # TYPE doublebook_attempts_under_way gauge\n\
                   doublebook_attempts_under_way 3\n";
    Operation::new(Get, "/metrics", TAG, "Tells what was counted and measured")
        .about("In the text format of Prometheus.")
        .answers_text("text/plain; version=0.0.4; charset=utf-8", "The metrics")
        .answered("metrics", "One of them", StatusCode::OK, example)
        .problems(&[Kind::INTERNAL])
}

fn document() -> Operation {
    let example = json!({"openapi": "3.1.0", "info": {"title": "doublebook"}, "paths": {}});
    Operation::new(Get, "/api/openapi.json", TAG, "Describes this API")
        .about("This document. The page /api shows the same.")
        .answers::<Value>(StatusCode::OK, "OpenAPI 3.1")
        .answered("document", "The beginning of it", StatusCode::OK, example)
        .problems(&[Kind::INTERNAL])
}
