//! The page of a room: gathers what the API tells of it, and hands each part to its view.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::address::InRoom;
use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::view::{
    AttemptView, AuditView, Control, LastRaceView, LockRow, RaceButton, SeatMap, Sold, Summary,
    SwitchView, WalletsView, lock_table, race_buttons, switchboard,
};
use super::{files, page};
use crate::app::{App, REQUEST_LIMIT};
use crate::http::Shared;
use crate::http::problem::Problem;
use crate::http::replicas::shown_locks;
use crate::http::rooms::shown;
use crate::name::Name;
use crate::peers::{self, Replica};
use crate::race::{self, LastRace};
use crate::room::{self, RoomName, ShownRoom};

/// Who books when nobody has typed a name yet.
const SOMEBODY: &str = "Mia";

/// `GET /`
pub async fn main(State(app): Shared, RawQuery(query): RawQuery) -> Result<Response, ProblemPage> {
    draw(&app, &RoomName::main(), query).await
}

/// `GET /rooms/{room}`
pub async fn show(
    State(app): Shared,
    InRoom(room): InRoom,
    RawQuery(query): RawQuery,
) -> Result<Response, ProblemPage> {
    draw(&app, &room, query).await
}

async fn draw(app: &App, name: &RoomName, query: Option<String>) -> Result<Response, ProblemPage> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let found = Found::gather(app, name, &asked).await?;
    Ok(page::page(StatusCode::OK, &template(app, found, asked)))
}

/// What the address asks for besides the room. What cannot be read is not asked for.
struct Asked {
    attempt: Option<Uuid>,
    buyer: Option<Name>,
}

impl Asked {
    fn parse(query: &str) -> Self {
        let fields = Fields::parse(query.as_bytes()).unwrap_or_default();
        let attempt = fields.first("attempt");
        let buyer = fields.first("buyer");
        Self {
            attempt: attempt.and_then(|text| Uuid::try_parse(text).ok()),
            buyer: buyer.and_then(|text| text.parse().ok()),
        }
    }
}

/// What the page is about.
struct Found {
    room: ShownRoom,
    replicas: Vec<Replica>,
    last: Option<LastRace>,
    attempt: Option<AttemptView>,
}

impl Found {
    /// All at once: a replica that does not answer is waited for once.
    async fn gather(app: &App, name: &RoomName, asked: &Asked) -> Result<Self, Problem> {
        let (room, replicas, last, attempt) = tokio::join!(
            shown(app, name),
            peers::replicas(app),
            last_race(app, name),
            attempt(app, name, asked.attempt),
        );
        Ok(Self {
            room: room?,
            replicas: replicas?,
            last: last?,
            attempt,
        })
    }
}

async fn last_race(app: &App, name: &RoomName) -> Result<Option<LastRace>, Problem> {
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    match room::store::load(&mut session, name, &[]).await? {
        Some((room, _)) => Ok(race::last(&mut session, room.id).await?),
        None => Ok(None),
    }
}

/// An attempt of this room, if a replica remembers it.
async fn attempt(app: &App, name: &RoomName, attempt: Option<Uuid>) -> Option<AttemptView> {
    let record = peers::record(app, attempt?).await?;
    (record.room == name.as_str()).then(|| AttemptView::new(&record))
}

#[derive(Template)]
#[template(path = "room.html")]
struct RoomTemplate {
    style: String,
    icon: String,
    room: String,
    me: String,
    replicas: Vec<ReplicaView>,
    summary: Summary,
    audit: AuditView,
    races: Vec<RaceButton>,
    last: Option<LastRaceView>,
    attempt: Option<AttemptView>,
    buyer: String,
    seats: SeatMap,
    wallets: WalletsView,
    switches: Vec<SwitchView>,
    locks: Vec<LockRow>,
}

/// A replica in the header.
struct ReplicaView {
    name: String,
    alive: bool,
    /// The same room there.
    link: Option<String>,
}

fn template(app: &App, found: Found, asked: Asked) -> RoomTemplate {
    let Found {
        room,
        replicas,
        last,
        attempt,
    } = found;
    let locks = shown_locks(app);
    let lock = room.switches.lock;
    RoomTemplate {
        style: files::address("style.css"),
        icon: files::address("icon.svg"),
        me: app.me.name.clone(),
        replicas: replicas
            .into_iter()
            .map(|replica| replica_view(replica, &app.me.name, &room.room))
            .collect(),
        summary: Summary::new(&room.switches, app.locks.why_not(lock)),
        audit: AuditView::new(&room.audit, room.switches.locking),
        races: race_buttons(last.as_ref()),
        last: last.as_ref().map(LastRaceView::new),
        attempt,
        buyer: asked
            .buyer
            .map_or_else(|| SOMEBODY.to_owned(), |buyer| buyer.to_string()),
        wallets: WalletsView::new(&room.wallets, &room.audit),
        switches: switchboard(&room.switches, app.database.dialect(), &locks),
        locks: lock_table(&locks, lock.as_str()),
        seats: SeatMap::new(room.seats, &room.audit.seats_sold_twice),
        room: room.room,
    }
}

/// A replica tells its own address; only one that a browser can open becomes a link.
fn replica_view(replica: Replica, me: &str, room: &str) -> ReplicaView {
    let opens = ["http://", "https://"]
        .iter()
        .any(|scheme| replica.url.starts_with(scheme));
    let link = opens && replica.alive && replica.name != me;
    ReplicaView {
        alive: replica.alive,
        link: link.then(|| format!("{}/rooms/{room}", replica.url.trim_end_matches('/'))),
        name: replica.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_cannot_mean_is_not_asked_for() {
        let asked = Asked::parse("attempt=4b0c5b8e-6a52-4a35-9a1f-3e6b7e0f8a11&buyer=Ana+M%C3%BC");
        assert!(asked.attempt.is_some());
        assert_eq!(asked.buyer.as_ref().map(Name::as_str), Some("Ana Mü"));
        for query in [
            "",
            "attempt=x&buyer=",
            "attempt&buyer=%00",
            "buyer=%ff",
            "&=&%",
        ] {
            let asked = Asked::parse(query);
            assert!(asked.attempt.is_none() && asked.buyer.is_none(), "{query}");
        }
    }

    #[test]
    fn only_an_address_that_a_browser_opens_becomes_a_link() {
        let link = |url: &str, alive| {
            let replica = Replica {
                name: "B".to_owned(),
                url: url.to_owned(),
                pid: 1,
                alive,
                last_seen: None,
            };
            replica_view(replica, "A", "main").link
        };
        let there = "http://127.0.0.1:3002";
        let page = "http://127.0.0.1:3002/rooms/main";
        assert_eq!(link(there, true).as_deref(), Some(page));
        assert_eq!(link(there, false), None);
        assert_eq!(link("javascript:alert(1)//", true), None);
    }
}
