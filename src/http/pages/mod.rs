//! The pages: server-rendered, whole without script.
//!
//! Promises: a page shows what the API tells, in words; a form runs what the API runs and answers 303, so reload and
//! back do nothing twice; nothing is loaded from another host; who takes gzip gets it, since a workshop shares one bad
//! Wi-Fi. A page is of the moment in which it was asked for; its
//! script, where there is one, keeps it so.

mod actions;
mod address;
mod fields;
mod files;
mod load_page;
mod page;
mod problem_page;
mod room_page;
mod rooms_page;
mod via;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

pub use files::address as file;
pub use page::page;
pub use problem_page::ProblemPage;

use crate::app::App;

/// All pages, the forms on them, and the files that they are drawn with.
pub fn routes() -> Router<Arc<App>> {
    // Who asks for a form's address with GET (by reloading a problem, say) is brought to its room.
    let forms = Router::new()
        .route("/switches", post(actions::switches).get(actions::back))
        .route("/bookings", post(actions::book).get(actions::back))
        .route("/transfers", post(actions::transfer).get(actions::back))
        .route("/races", post(actions::race).get(actions::back))
        .route("/reset", post(actions::reset).get(actions::back));
    Router::new()
        .route("/", get(room_page::main))
        .route("/rooms", get(rooms_page::show).post(rooms_page::make))
        .route("/load", get(load_page::show).post(load_page::start))
        .route("/load/stop", post(load_page::stop))
        .route("/load/report", get(load_page::report))
        .route("/rooms/{room}", get(room_page::show))
        .route("/rooms/{room}/parts", get(room_page::parts))
        .nest("/rooms/{room}", forms)
        .route("/static/{version}/{*file}", get(files::serve))
        // A page of ten thousand seats is made small within some milliseconds, or not at all.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
}
