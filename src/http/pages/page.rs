//! Every page: its headers, and what they forbid.

use askama::Template;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// Scripts and styles are files of this replica, never text within a page; a script speaks to this replica only.
/// Nothing from elsewhere, nobody else's frame; forms go to this site only.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                                       img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                                       base-uri 'none'; frame-ancestors 'none'";

/// Other sites learn nothing. `no-referrer` would also take the `Origin` from our own forms, and then they would be
/// refused as foreign.
const REFERRER_POLICY: &str = "same-origin";

/// A template as an answer.
pub fn page(status: StatusCode, template: &impl Template) -> Response {
    let about: [(HeaderName, &str); 2] = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, REFERRER_POLICY),
    ];
    match template.render() {
        Ok(html) => (status, about, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be drawn");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "This page could not be drawn.",
            )
                .into_response()
        }
    }
}
