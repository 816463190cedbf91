//! HTTP: all routes in one table, and what is true of every request.
//!
//! A handler parses, calls one use case, and hands on its result. Handlers know no SQL and no lock.

mod attempts;
mod body;
mod gates;
mod health;
mod kind;
mod live;
mod metrics;
mod openapi;
mod origin;
mod pages;
mod path;
mod peer;
mod problem;
mod races;
mod records;
mod replicas;
mod rooms;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::App;
use problem::Problem;

/// What every handler gets.
type Shared = State<Arc<App>>;

/// Everything that this replica answers.
pub fn router(app: Arc<App>) -> Router {
    let rooms = Router::new()
        .route(
            "/{room}",
            get(rooms::show).put(rooms::put).delete(rooms::delete),
        )
        .route("/{room}/switches", patch(rooms::switches))
        .route("/{room}/reset", post(rooms::reset))
        .route("/{room}/audit", get(rooms::audit))
        .route("/{room}/live", get(live::live))
        .route(
            "/{room}/bookings",
            get(records::bookings).post(attempts::book),
        )
        .route(
            "/{room}/transfers",
            get(records::transfers).post(attempts::transfer),
        )
        .route("/{room}/races", post(races::race))
        .route("/{room}/races/last", get(races::last))
        .route(
            "/{room}/gates/{gate}",
            get(gates::waiting).post(gates::open),
        );
    // What replicas ask each other. Not part of the API.
    let peer = Router::new()
        .route("/gates/{room}/{gate}", get(peer::waiting).post(peer::open))
        .route("/leases-left/{room}", get(peer::leases_left))
        .route("/races/{room}", get(peer::race_under_way))
        .route("/attempts/{attempt}", get(peer::record))
        .route("/feed/{room}", get(live::feed))
        .route("/readers", get(peer::readers));
    Router::new()
        .merge(pages::routes())
        .nest("/api/rooms", rooms)
        .route("/api", get(openapi::show))
        .route("/api/openapi.json", get(openapi::json))
        .route("/api/replicas", get(replicas::list))
        .route("/api/locks", get(replicas::locks))
        .nest("/peer", peer)
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            origin::refuse_foreign,
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(CatchPanicLayer::custom(fault_of_ours))
        .with_state(app)
}

async fn nothing_here(uri: Uri) -> Response {
    let problem = Problem::not_found(format!("nothing is at {}", uri.path()));
    in_the_form_of(&uri, problem)
}

async fn wrong_method(uri: Uri) -> Response {
    in_the_form_of(&uri, Problem::method_not_allowed())
}

/// Problems of pages are pages.
fn in_the_form_of(uri: &Uri, problem: Problem) -> Response {
    let machine = ["/api", "/peer", "/healthz", "/readyz", "/metrics"]
        .iter()
        .any(|prefix| uri.path().starts_with(prefix));
    if machine {
        problem.into_response()
    } else {
        pages::ProblemPage::from(problem).into_response()
    }
}

fn fault_of_ours(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let cause = panic.downcast_ref::<String>().cloned();
    let cause = cause
        .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_default();
    let error = crate::section::SectionError::Internal(cause);
    Problem::from(error).into_response()
}
