//! The page of all rooms: each a sandbox of its own, made with one click.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use uuid::Uuid;

use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::{address, files, page};
use crate::app::App;
use crate::database::REQUEST_LIMIT;
use crate::http::Shared;
use crate::http::problem::Problem;
use crate::invalid::InvalidField;
use crate::room::{self, Change, Layout, NotARoomName, RoomName, Switches};

/// How many rooms are listed; load runs make many.
const MOST_LISTED: usize = 200;

const HOW: [&str; 16] = [
    "amber", "brave", "calm", "clever", "coral", "early", "gentle", "golden", "green", "happy",
    "lucky", "quiet", "silver", "sunny", "swift", "violet",
];
const WHO: [&str; 16] = [
    "badger", "beaver", "falcon", "finch", "fox", "hare", "heron", "lynx", "marten", "otter",
    "owl", "raven", "robin", "seal", "stork", "wren",
];

#[derive(Template)]
#[template(path = "rooms.html")]
struct RoomsTemplate {
    style: String,
    icon: String,
    me: String,
    suggested: String,
    rooms: Vec<String>,
    more: usize,
}

/// `GET /rooms`
pub async fn show(State(app): Shared) -> Result<Response, ProblemPage> {
    let mut rooms = names(&app).await?;
    let suggested = free_name(&rooms);
    let more = rooms.len().saturating_sub(MOST_LISTED);
    rooms.truncate(MOST_LISTED);
    let template = RoomsTemplate {
        style: files::address("style.css"),
        icon: files::address("icon.svg"),
        me: app.me.name.clone(),
        suggested,
        rooms,
        more,
    };
    Ok(page::page(StatusCode::OK, &template))
}

async fn names(app: &App) -> Result<Vec<String>, Problem> {
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    Ok(room::store::names(&mut session).await?)
}

/// A name that no room has: two words, and a number where all of those are taken.
fn free_name(taken: &[String]) -> String {
    let [one, two, ..] = Uuid::new_v4().into_bytes().map(usize::from);
    let words = format!("{}-{}", HOW[one % HOW.len()], WHO[two % WHO.len()]);
    let numbered = (2..).map(|number| format!("{words}-{number}"));
    std::iter::once(words.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or(words)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoomForm {
    room: String,
}

/// `POST /rooms`: `room`. Who names a room that is there is brought to it; nothing in it is touched.
pub async fn make(State(app): Shared, form: Result<Fields, Problem>) -> Response {
    match try_to_make(&app, form).await {
        Ok(room) => Redirect::to(&format!("{}/{room}", address::ROOMS)).into_response(),
        Err(problem) => ProblemPage::from(problem).into_response(),
    }
}

async fn try_to_make(app: &App, form: Result<Fields, Problem>) -> Result<RoomName, Problem> {
    let RoomForm { room } = form?.read()?;
    let name: RoomName = room
        .parse()
        .map_err(|error: NotARoomName| InvalidField::new("room", error.to_string()))?;
    if !names(app).await?.contains(&room) {
        let switches = Switches::for_people(app.locks.default_lock());
        let change = Change::LayOut(Layout::default(), switches);
        room::change(&app.database, &name, &change).await?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_name_is_free_and_is_one() {
        let mut taken: Vec<String> = Vec::new();
        for how in HOW {
            taken.extend(WHO.map(|who| format!("{how}-{who}")));
        }
        let name = free_name(&taken);
        assert!(name.ends_with("-2"), "{name}");
        assert!(name.parse::<RoomName>().is_ok());
        assert!(!free_name(&[]).ends_with("-2"));
    }
}
