//! Refuses changes that another site asks for.
//!
//! An `Origin` is foreign when its host and port differ from the request's `Host`: another site's page sent it. A
//! `Host` is foreign when it is a *name* that nobody has allowed: DNS rebinding needs a name, so IP addresses never
//! are.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Shared;
use super::problem::Problem;
use crate::app::App;

/// Lets through what only looks, and what comes from here.
pub async fn refuse_foreign(State(app): Shared, request: Request, next: Next) -> Response {
    let only_looks = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if !only_looks && let Err(problem) = check(&app, request.headers(), request.uri()) {
        return super::in_the_form_of(request.uri(), problem);
    }
    next.run(request).await
}

fn check(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let host = text(headers, &header::HOST).or_else(|| uri.authority().map(ToString::to_string));
    let host = host.map(|host| host.to_ascii_lowercase());
    let Some(host) = host.filter(|host| !host.is_empty()) else {
        return Err(Problem::foreign("the request has no Host"));
    };
    let name = name_of(&host);
    if !is_allowed(app, name) {
        return Err(Problem::foreign(format!(
            "this replica is not known as {name}; if it should be, start it with --allow-host {name}"
        )));
    }
    match text(headers, &header::ORIGIN).map(|origin| origin.to_ascii_lowercase()) {
        Some(origin) if host_of(&origin) != Some(host.as_str()) => Err(Problem::foreign(format!(
            "a page of {origin} may not ask for changes here"
        ))),
        _ => Ok(()),
    }
}

fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn is_allowed(app: &App, name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let advertised = app
        .me
        .url
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_ascii_lowercase));
    name == "localhost"
        || bare.parse::<IpAddr>().is_ok()
        || advertised.as_deref() == Some(name)
        || app
            .allowed_hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// The host of `scheme://host:port`; an opaque origin (`null`) has none.
fn host_of(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, host)| host)
}

/// Without the port; an IPv6 address keeps its brackets.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_the_name() {
        assert_eq!(name_of("localhost:3001"), "localhost");
        assert_eq!(name_of("[::1]:3001"), "[::1]");
        assert_eq!(name_of("[::1]"), "[::1]");
        assert_eq!(name_of("shop.example"), "shop.example");
    }

    #[test]
    fn an_opaque_origin_has_no_host() {
        assert_eq!(host_of("null"), None);
        assert_eq!(host_of("http://127.0.0.1:3001"), Some("127.0.0.1:3001"));
    }
}
