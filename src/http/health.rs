//! Whether this replica is alive, and whether it can work.

use axum::extract::State;
use axum::http::StatusCode;

use super::Shared;
use super::problem::Problem;
use crate::section::SectionError;

/// How long the database may take to answer that it is there.
const READY_LIMIT: std::time::Duration = std::time::Duration::from_secs(2);

/// `GET /healthz`: this process answers.
pub async fn alive() -> &'static str {
    "alive\n"
}

/// `GET /readyz`: the database can be reached, and this replica is not stopping.
pub async fn ready(State(app): Shared) -> Result<(StatusCode, &'static str), Problem> {
    if app.shutdown.has_begun() {
        return Err(SectionError::ShuttingDown.into());
    }
    app.database.ping(READY_LIMIT).await?;
    Ok((StatusCode::OK, "ready\n"))
}
