//! Reading bodies: strict JSON whose errors name the field.

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::problem::Problem;
use crate::invalid::{InvalidField, Wrapped};

/// The longest body that is read.
pub const LONGEST_BODY: usize = 64 * 1024;

/// How long a client may take to send its body.
const BODY_LIMIT: Duration = Duration::from_secs(15);

/// How much of a longer one is read away before it is refused.
const READ_AWAY: usize = 16 * 1024 * 1024;

/// A JSON body.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let bytes = read(request).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub struct OptionalJsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        if !is_json {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        parse(&bytes).map(Self)
    }
}

/// The bytes of a body, if they are not too many. Of a body that is too long the rest is read away, up to a limit:
/// a client that is still sending would not hear the answer.
pub async fn read(request: Request) -> Result<Vec<u8>, Problem> {
    let late = |_| Err(Problem::too_slow(BODY_LIMIT));
    tokio::time::timeout(BODY_LIMIT, read_all(request))
        .await
        .unwrap_or_else(late)
}

async fn read_all(request: Request) -> Result<Vec<u8>, Problem> {
    let declared = request.body().size_hint().lower();
    if declared > READ_AWAY as u64 {
        return Err(Problem::too_large(LONGEST_BODY));
    }
    let mut chunks = request.into_body().into_data_stream();
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let broken = |_| Problem::invalid_json("the body could not be read to its end");
        let chunk = chunk.map_err(broken)?;
        length += chunk.len();
        if length > READ_AWAY {
            break;
        }
        if length <= LONGEST_BODY {
            bytes.extend_from_slice(&chunk);
        }
    }
    if length > LONGEST_BODY {
        return Err(Problem::too_large(LONGEST_BODY));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Wrapped(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // An enum that meets a number calls that a fault of syntax; whether it is one, the text itself tells.
        match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => refused(&path, error.inner()),
            Err(syntax) => Problem::invalid_json(syntax.to_string()),
        }
    })?;
    reader
        .end()
        .map_err(|error| Problem::invalid_json(error.to_string()))?;
    Ok(value)
}

/// Reads a value that is JSON already, with the same errors.
pub fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        refused(&path, error.inner())
    })
}

fn refused(path: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    // serde tells of unknown, missing and repeated fields in words, its name between backticks.
    let told = || {
        text.split('`')
            .nth(1)
            .filter(|_| text.contains(" field `"))
            .map(str::to_owned)
    };
    let parent = path.trim_end_matches(['.', '?']);
    let field = match (parent, told()) {
        ("", Some(name)) => name,
        ("", None) => "the body".to_owned(),
        (parent, Some(name)) if !parent.ends_with(&name) => format!("{parent}.{name}"),
        (parent, _) => parent.to_owned(),
    };
    let problem = in_words(text.split(" at line ").next().unwrap_or(&text));
    InvalidField::new(field, format!("cannot be taken: {problem}")).into()
}

/// serde speaks of the types of a program; people know other words.
fn in_words(problem: &str) -> String {
    match problem {
        // What an enum says of anything that is no text.
        "expected value" => "expected one of its values, as a text".to_owned(),
        _ => problem.replace("u32", "a whole number that is not negative"),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are looked at")]
    struct Order {
        seat: String,
        pause: Option<Pause>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are looked at")]
    struct Pause {
        ms: u32,
    }

    fn field(json: &str) -> Option<Box<str>> {
        parse::<Order>(json.as_bytes()).unwrap_err().field
    }

    #[test]
    fn a_refused_field_is_named() {
        assert_eq!(field(r#"{"seat": 1}"#).as_deref(), Some("seat"));
        assert_eq!(field("{}").as_deref(), Some("seat"));
        assert_eq!(field(r#"{"seat": "A1", "x": 1}"#).as_deref(), Some("x"));
        assert_eq!(
            field(r#"{"seat": "A1", "seat": "A2"}"#).as_deref(),
            Some("seat")
        );
        assert_eq!(
            field(r#"{"seat": "A1", "pause": {"ms": -1}}"#).as_deref(),
            Some("pause.ms")
        );
        assert_eq!(
            field(r#"{"seat": "A1", "pause": {}}"#).as_deref(),
            Some("pause.ms")
        );
        assert_eq!(field("[]").as_deref(), Some("the body"));
    }

    #[test]
    fn what_is_no_json_is_told_apart() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "}",
            "{\"seat\": \"A1\"",
            "{\"seat\": \"\\ud800\"}",
            "{\"seat\":\"A1\"} x",
            deep.as_str(),
        ] {
            let problem = parse::<Order>(text.as_bytes()).unwrap_err();
            assert!(
                problem.status == 400 || problem.status == 422,
                "{problem:?}"
            );
        }
        assert_eq!(parse::<Order>(b"}").unwrap_err().word, "invalid-json");
    }
}
