//! The files that pages are drawn with. They are part of the binary, so it runs from any folder.
//!
//! All files stand under one address that changes when any of them does, so a browser may keep them for good, never
//! shows an old one, and modules find each other by relative paths.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::ProblemPage;
use crate::http::problem::Problem;

const FOR_GOOD: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

#[derive(RustEmbed)]
#[folder = "static/"]
struct Files;

/// The address of a file, with the version of all files in it.
pub fn address(name: &str) -> String {
    format!("/static/{}/{name}", version())
}

/// The addresses of all modules, so that a browser asks for them at once and not one after the other.
pub fn modules() -> Vec<String> {
    let mut names: Vec<_> = Files::iter().filter(|name| name.ends_with(".js")).collect();
    names.sort_unstable();
    names.iter().map(|name| address(name)).collect()
}

/// `GET /static/{version}/{file}`
pub async fn serve(Path((asked, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(file) = Files::get(&name) else {
        return ProblemPage::from(Problem::not_found("there is no such file")).into_response();
    };
    let etag = format!("\"{}\"", hash(&file));
    let keep = if asked == version() {
        FOR_GOOD
    } else {
        ASK_AGAIN
    };
    let known = headers.get(header::IF_NONE_MATCH);
    let is_known = known
        .and_then(|value| value.to_str().ok())
        .is_some_and(|known| known.split(',').any(|one| one.trim().ends_with(&etag)));
    let about = [
        (header::ETAG, etag),
        (header::CACHE_CONTROL, keep.to_owned()),
        (header::CONTENT_TYPE, content_type(&name).to_owned()),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, file.data.into_owned()).into_response()
}

/// The first bytes of the content's SHA-256: enough to tell one version from another.
fn hash(file: &EmbeddedFile) -> String {
    let bytes = file.metadata.sha256_hash();
    bytes[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Changes with the content of any file.
fn version() -> String {
    let mut names: Vec<_> = Files::iter().collect();
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for name in names {
        name.hash(&mut hasher);
        Files::get(&name).map(|file| hash(&file)).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_stand_under_one_version() {
        let style = address("style.css");
        let (_, version) = style
            .strip_suffix("/style.css")
            .and_then(|folder| folder.rsplit_once('/'))
            .unwrap();
        assert_eq!(version.len(), 16);
        let modules = modules();
        assert!(modules.contains(&format!("/static/{version}/room.js")));
        assert!(modules.iter().all(|module| module.contains(version)));
    }

    #[test]
    fn every_file_has_a_type_that_a_browser_takes() {
        for name in Files::iter() {
            assert_ne!(content_type(&name), "application/octet-stream", "{name}");
        }
    }
}
