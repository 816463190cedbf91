//! The address of a room's page, read and written.

use axum::extract::{FromRequestParts, Path};
use axum::http::header;
use axum::http::request::Parts;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use super::ProblemPage;
use super::fields::Fields;
use crate::http::problem::Problem;
use crate::http::rooms::room_name;
use crate::room::RoomName;

/// The page of all rooms.
pub const ROOMS: &str = "/rooms";

/// The room that an address names, and how its page is to be seen.
#[derive(Debug, Clone)]
pub struct Place {
    /// The room.
    pub room: RoomName,
    /// Whether it is shown to a room full of people: large, with few controls.
    pub projector: bool,
    /// Whether a script asks, which wants to be told and not led to another page.
    pub by_script: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Place {
    type Rejection = ProblemPage;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemPage> {
        let Ok(Path(name)) = Path::<String>::from_request_parts(parts, state).await else {
            return Err(Problem::not_found("this address names no room").into());
        };
        Ok(Self::of(room_name(&name)?, parts))
    }
}

impl Place {
    /// A room, seen as the rest of a request says.
    pub fn of(room: RoomName, parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let fields = Fields::parse(query.as_bytes()).unwrap_or_default();
        let accept = parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        Self {
            room,
            projector: fields.first("view") == Some("projector"),
            by_script: accept.is_some_and(|accept| accept.starts_with("application/json")),
        }
    }

    /// The room's page.
    pub fn page(&self) -> String {
        format!("/rooms/{}{}", self.room, self.view())
    }

    /// What a form of the page adds to its address, so that the page is seen alike after it.
    pub fn view(&self) -> &'static str {
        if self.projector {
            "?view=projector"
        } else {
            ""
        }
    }

    /// The room's page that tells what became of attempts, and remembers the buyer.
    pub fn page_of(&self, told: &Told) -> String {
        let mut query: Vec<String> = Vec::new();
        if self.projector {
            query.push("view=projector".to_owned());
        }
        query.extend(told.attempts.iter().map(|id| format!("attempt={id}")));
        if let Some(buyer) = &told.buyer {
            let buyer = utf8_percent_encode(buyer, NON_ALPHANUMERIC);
            query.push(format!("buyer={buyer}"));
        }
        format!("/rooms/{}?{}#attempt", self.room, query.join("&"))
    }
}

/// Attempts of which the room's page can tell.
#[derive(Debug, Default)]
pub struct Told {
    /// Which.
    pub attempts: Vec<Uuid>,
    /// Who booked.
    pub buyer: Option<String>,
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn place(address: &str, accept: &str) -> Place {
        let request = Request::get(address).header(header::ACCEPT, accept);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Place::of(RoomName::main(), &parts)
    }

    #[test]
    fn a_form_leads_back_to_the_view_that_it_was_sent_from() {
        let large = place("/rooms/main/races?view=projector", "text/html");
        assert_eq!(large.page(), "/rooms/main?view=projector");
        assert_eq!(
            place("/rooms/main/races?view=x", "*/*").page(),
            "/rooms/main"
        );
        let told = Told {
            attempts: vec![Uuid::nil()],
            buyer: Some("Ana & Ben".to_owned()),
        };
        let page = format!(
            "/rooms/main?view=projector&attempt={}&buyer=Ana%20%26%20Ben#attempt",
            Uuid::nil()
        );
        assert_eq!(large.page_of(&told), page);
    }

    #[test]
    fn only_a_script_asks_for_json() {
        assert!(place("/rooms/main/bookings", "application/json").by_script);
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert!(!place("/rooms/main/bookings", browser).by_script);
    }
}
