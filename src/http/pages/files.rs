//! The files that pages are drawn with. They are part of the binary, so it runs from any folder.
//!
//! A page names each file with the hash of its content, so a browser may keep it for good and never shows an old one.

use axum::extract::{Path, RawQuery};
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

/// The address of a file, its hash with it.
pub fn address(name: &str) -> String {
    let hash = Files::get(name).map(|file| hash(&file)).unwrap_or_default();
    format!("/static/{name}?v={hash}")
}

/// `GET /static/{file}`
pub async fn serve(
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(file) = Files::get(&name) else {
        return ProblemPage::from(Problem::not_found("there is no such file")).into_response();
    };
    let hash = hash(&file);
    let etag = format!("\"{hash}\"");
    let keep = if query == Some(format!("v={hash}")) {
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

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_files_by_their_content() {
        for name in ["style.css", "icon.svg"] {
            let (path, hash) = {
                let address = address(name);
                let (path, hash) = address.split_once("?v=").unwrap();
                (path.to_owned(), hash.to_owned())
            };
            assert_eq!(path, format!("/static/{name}"));
            assert_eq!(hash.len(), 16, "{name} is there");
        }
    }
}
