//! The replicas, and the lock systems with their guarantees.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use super::problem::Problem;
use crate::app::App;
use crate::lock::{Guarantees, LockName};
use crate::peers::{self, Replica};

/// `GET /api/replicas`
pub async fn list(State(app): Shared) -> Result<Json<Vec<Replica>>, Problem> {
    Ok(Json(peers::replicas(&app).await?))
}

/// A lock system: whether it can be chosen on this replica, and what it guarantees.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownLock {
    /// Its name.
    pub lock: LockName,
    /// Whether it can be chosen on this replica.
    pub available: bool,
    /// Why it cannot, if it cannot.
    #[schema(required)]
    pub why_not: Option<String>,
    /// What it guarantees, and what it does not.
    pub guarantees: &'static Guarantees,
}

/// `GET /api/locks`
pub async fn locks(State(app): Shared) -> Json<Vec<ShownLock>> {
    Json(shown_locks(&app))
}

/// All lock systems, for the API and the page alike.
pub fn shown_locks(app: &App) -> Vec<ShownLock> {
    LockName::ALL
        .into_iter()
        .map(|lock| {
            let why_not = app.locks.why_not(lock);
            ShownLock {
                lock,
                available: why_not.is_none(),
                why_not,
                guarantees: lock.guarantees(),
            }
        })
        .collect()
}
