//! The API described for machines (OpenAPI 3.1) at `/api/openapi.json`, and for people at `/api`.
//!
//! Promises: schemas are those of the types that are read and sent, kinds of problems those of the one table. An
//! example of a request and its answer have one name: the answer under it is what the request gets in a new room with
//! the default seats and wallets. The handlers know nothing of all this.

mod attempts;
mod gates;
mod health;
mod operation;
mod page;
mod races;
mod replicas;
mod rooms;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths,
};

use operation::Operation;
pub use page::show;

const ABOUT: &str = "Sells seats and moves money on several replicas, with and without locks. Bodies are JSON of at \
                     most 64 KiB; unknown fields are refused. Errors are problem documents (RFC 9457) whose type is \
                     stable. A method that an address does not have is 405 method-not-allowed.";

/// `GET /api/openapi.json`
pub async fn json() -> Response {
    let json = (header::CONTENT_TYPE, "application/json");
    match document().to_json() {
        Ok(text) => ([json], text).into_response(),
        Err(error) => {
            let error = crate::section::SectionError::Internal(error.to_string());
            super::problem::Problem::from(error).into_response()
        }
    }
}

/// The whole description.
fn document() -> OpenApi {
    let (mut paths, mut components) = (Paths::new(), Components::new());
    for operation in operations() {
        operation.add_to(&mut paths, &mut components);
    }
    let tags = [
        (
            "Rooms",
            "Sandboxes with their own seats, wallets and switches.",
        ),
        ("Attempts", "One try to book a seat or to move money."),
        ("Races", "Real requests, sent so that they meet."),
        ("Gates", "Where attempts that asked for it stand still."),
        (
            "Replicas",
            "The processes, and the lock systems that they have.",
        ),
        ("Health", "For whoever operates a replica."),
    ]
    .map(|(name, about)| {
        TagBuilder::new()
            .name(name)
            .description(Some(about))
            .build()
    });
    OpenApiBuilder::new()
        .info(info())
        .paths(paths)
        .components(Some(components))
        .tags(Some(tags))
        .build()
}

fn info() -> Info {
    let license = LicenseBuilder::new()
        .name(env!("CARGO_PKG_LICENSE"))
        .build();
    InfoBuilder::new()
        .title("doublebook")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license))
        .build()
}

/// All operations, in the order in which people meet them.
fn operations() -> Vec<Operation> {
    [
        rooms::operations(),
        attempts::operations(),
        races::operations(),
        gates::operations(),
        replicas::operations(),
        health::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
