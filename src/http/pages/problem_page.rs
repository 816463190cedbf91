//! A problem as a page: what happened, whether anything was changed, and the way back.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::address::Place;
use super::{files, page};
use crate::http::problem::{Outcome, Problem};

/// A problem as a page.
#[derive(Debug)]
pub struct ProblemPage {
    problem: Problem,
    back: Option<String>,
}

impl ProblemPage {
    /// A problem met in a room: the way back leads there.
    pub fn in_room(problem: Problem, place: &Place) -> Self {
        let back = Some(place.page());
        Self { problem, back }
    }
}

impl From<Problem> for ProblemPage {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            back: None,
        }
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemTemplate {
    style: String,
    icon: String,
    problem: Problem,
    back: Option<String>,
    effect: &'static str,
}

impl IntoResponse for ProblemPage {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let effect = match self.problem.outcome {
            Outcome::DidNotHappen => "Nothing was changed.",
            Outcome::MayHaveHappened => "It may have happened: look before you try again.",
        };
        let template = ProblemTemplate {
            style: files::address("style.css"),
            icon: files::address("icon.svg"),
            problem: self.problem,
            back: self.back,
            effect,
        };
        let mut response = page::page(status, &template);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        response
    }
}
