//! The pages: server-rendered, whole without script.

use std::sync::Arc;

use axum::Router;
use axum::response::{Html, IntoResponse, Response};

use super::problem::Problem;
use crate::app::App;

/// All pages.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
}

/// A problem as a page.
pub struct ProblemPage(pub Problem);

impl IntoResponse for ProblemPage {
    fn into_response(self) -> Response {
        let status = axum::http::StatusCode::from_u16(self.0.status).unwrap_or_default();
        (status, Html("problem")).into_response()
    }
}
