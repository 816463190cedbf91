//! The variable parts of an address. What cannot be read is not there.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// As axum's `Path`, but an address that cannot be read is a problem document like every other.
#[derive(Debug)]
pub struct Address<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Address<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::from_request_parts(parts, state).await;
        let Path(value) = read.map_err(|rejection| Problem::not_found(rejection.body_text()))?;
        Ok(Self(value))
    }
}
