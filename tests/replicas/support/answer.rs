//! What a replica answered, held to the contract wherever a test looks at it.

use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer with its body read.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// From before the request was sent until the whole body was there.
    pub took: Duration,
}

impl Answer {
    /// Sends the request; an error means that there was no whole answer.
    pub async fn to(request: RequestBuilder) -> Result<Self, reqwest::Error> {
        let start = Instant::now();
        let response = request.send().await?;
        Ok(Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
            took: start.elapsed(),
        })
    }

    /// A header as text, empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("a readable header"))
            .unwrap_or_default()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.text) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}): {self:?}"),
        }
    }

    /// `booked`, `transferred`, or the last word of the problem's type, with all that the contract says of it.
    #[track_caller]
    pub fn outcome(&self) -> String {
        if self.status == 201 {
            let body = self.json();
            return if body["buyer"].is_string() {
                "booked"
            } else {
                "transferred"
            }
            .to_owned();
        }
        let word = self.problem();
        if let Some(status) = status_of(&word) {
            assert_eq!(self.status, status, "the status of {word}: {self:?}");
        }
        word
    }

    /// The last word of the problem's type; fails when this is not a problem document.
    #[track_caller]
    pub fn problem(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["status"], self.status, "{self:?}");
        assert!(body["title"].is_string(), "a title: {self:?}");
        if self.status == 503 {
            assert!(
                self.header("retry-after").parse::<u64>().is_ok(),
                "Retry-After in seconds: {self:?}"
            );
        }
        word_of(body["type"].as_str().expect("a problem has a type"))
    }

    /// Fails unless the outcome is this one.
    #[track_caller]
    pub fn is(&self, outcome: &str) -> &Self {
        assert_eq!(self.outcome(), outcome, "{self:?}");
        self
    }

    /// Fails unless it refuses with one of these words, a status from 400 to 499, and a text that names `field`.
    #[track_caller]
    pub fn refuses(&self, words: &[&str], field: &str) -> &Self {
        assert!((400..500).contains(&self.status), "{self:?}");
        let word = self.problem();
        assert!(words.contains(&word.as_str()), "not {words:?}: {self:?}");
        assert!(self.text.contains(field), "names {field:?}: {self:?}");
        self
    }

    /// A duration of `Server-Timing` in milliseconds.
    #[track_caller]
    pub fn timing(&self, name: &str) -> f64 {
        self.server_timing(name, "dur")
            .parse()
            .expect("a number of milliseconds")
    }

    /// How many requests the attempt sent to the lock system.
    #[track_caller]
    pub fn trips(&self) -> u64 {
        self.server_timing("trips", "desc")
            .trim_matches('"')
            .parse()
            .expect("a count")
    }

    #[track_caller]
    fn server_timing(&self, name: &str, parameter: &str) -> &str {
        self.header("server-timing")
            .split(',')
            .map(str::trim)
            .filter_map(|metric| metric.split_once(';'))
            .find(|(metric, _)| *metric == name)
            .and_then(|(_, rest)| rest.trim().split_once('='))
            .filter(|(key, _)| *key == parameter)
            .map(|(_, value)| value)
            .unwrap_or_else(|| panic!("Server-Timing with {name};{parameter}: {self:?}"))
    }
}

/// `seat-taken` of `https://…/problems/seat-taken`.
fn word_of(kind: &str) -> String {
    kind.rsplit(|letter: char| !letter.is_ascii_lowercase() && letter != '-')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The documented status of an outcome, where there is exactly one.
fn status_of(word: &str) -> Option<u16> {
    Some(match word {
        "seat-taken" | "stale-token" | "row-changed" | "switches-changed" | "lease-lost"
        | "race-needs" => 409,
        "insufficient-funds" | "invalid-field" => 422,
        "not-found" => 404,
        "lock-timeout"
        | "deadlock"
        | "lock-unavailable"
        | "database-unavailable"
        | "database-busy"
        | "shutting-down" => 503,
        "outcome-unknown" => 500,
        _ => return None,
    })
}
