//! What Prometheus reads.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::problem::Problem;
use crate::section::SectionError;

/// See <https://prometheus.io/docs/instrumenting/exposition_formats/>.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`
pub async fn metrics(State(app): Shared) -> Result<Response, Problem> {
    let text = app.metrics.text(&app);
    let text = text.map_err(|error| SectionError::Internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response())
}
