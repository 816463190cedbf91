//! The page of a room: gathers what the API tells of it, and hands each part to its view.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts as RequestParts;
use axum::response::Response;
use futures_util::future::join_all;
use uuid::Uuid;

use super::address::Place;
use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::view::{
    AttemptView, AuditView, Control, LastRaceView, LockRow, RaceButton, SeatMap, Sold, Summary,
    SwitchView, WalletsView, as_drawn, lock_table, race_buttons, switchboard,
};
use super::{files, page, via};
use crate::app::App;
use crate::database::REQUEST_LIMIT;
use crate::http::Shared;
use crate::http::problem::Problem;
use crate::http::replicas::shown_locks;
use crate::http::rooms::shown;
use crate::name::Name;
use crate::peers::{self, Replica};
use crate::race::{self, LastRace};
use crate::room::{self, RoomName, ShownRoom, Switches};

/// Who books when nobody has typed a name yet.
const SOMEBODY: &str = "Mia";

/// How many attempts an address may ask about: as many as there are replicas in a workshop.
const MOST_ATTEMPTS: usize = 16;

/// `GET /`
pub async fn main(State(app): Shared, request: RequestParts) -> Result<Response, ProblemPage> {
    let place = Place::of(RoomName::main(), &request);
    draw(&app, place, &request).await
}

/// `GET /rooms/{room}`
pub async fn show(
    State(app): Shared,
    place: Place,
    request: RequestParts,
) -> Result<Response, ProblemPage> {
    draw(&app, place, &request).await
}

/// `GET /rooms/{room}/parts`: what of the page is said in words that only the server has, for its script. Seats,
/// wallets and audit are not among it; those come by the event stream.
pub async fn parts(
    State(app): Shared,
    place: Place,
    request: RequestParts,
) -> Result<Response, ProblemPage> {
    let asked = Asked::of(&request);
    let last = Last::gather(&app, &place.room, &asked).await?;
    let template = PartsTemplate {
        view: place.view(),
        room: place.room.to_string(),
        parts: Parts::new(&app, &last.switches, &last),
    };
    Ok(page::page(StatusCode::OK, &template))
}

async fn draw(app: &App, place: Place, request: &RequestParts) -> Result<Response, ProblemPage> {
    let asked = Asked::of(request);
    let found = Found::gather(app, &place.room, &asked).await?;
    let template = template(app, found, asked, &place);
    Ok(page::page(StatusCode::OK, &template))
}

/// What the address asks for besides the room. What cannot be read is not asked for.
struct Asked {
    attempts: Vec<Uuid>,
    /// An attempt of the race that a link means.
    race: Option<Uuid>,
    buyer: Option<Name>,
}

impl Asked {
    fn of(request: &RequestParts) -> Self {
        Self::parse(request.uri.query().unwrap_or_default())
    }

    fn parse(query: &str) -> Self {
        let fields = Fields::parse(query.as_bytes()).unwrap_or_default();
        let attempts = fields.all("attempt").take(MOST_ATTEMPTS);
        let buyer = fields.first("buyer");
        let race = fields.first("race");
        Self {
            race: race.and_then(|text| Uuid::try_parse(text).ok()),
            attempts: attempts
                .filter_map(|text| Uuid::try_parse(text).ok())
                .collect(),
            buyer: buyer.and_then(|text| text.parse().ok()),
        }
    }
}

/// What the page is about.
struct Found {
    room: ShownRoom,
    replicas: Vec<Replica>,
    last: Last,
}

impl Found {
    /// All at once: a replica that does not answer is waited for once.
    async fn gather(app: &App, name: &RoomName, asked: &Asked) -> Result<Self, Problem> {
        let (room, replicas, last) = tokio::join!(
            shown(app, name),
            peers::replicas(app),
            Last::gather(app, name, asked),
        );
        Ok(Self {
            room: room?,
            replicas: replicas?,
            last: last?,
        })
    }
}

/// What was done last in the room, and under which switches the next thing will be done.
struct Last {
    switches: Switches,
    race: Option<LastRace>,
    /// It is another one than was asked for.
    is_another: bool,
    attempts: Vec<AttemptView>,
}

impl Last {
    async fn gather(app: &App, name: &RoomName, asked: &Asked) -> Result<Self, Problem> {
        let attempts = asked.attempts.iter();
        let attempts = join_all(attempts.map(|&attempt| told(app, name, attempt)));
        let (room, attempts) = tokio::join!(switches_and_race(app, name), attempts);
        let (switches, race) = room?;
        let is_another = asked.race.is_some_and(|wanted| {
            let raced = race.iter().flat_map(|race| &race.attempts);
            raced.into_iter().all(|raced| raced.attempt != wanted)
        });
        Ok(Self {
            switches,
            race,
            is_another,
            attempts: attempts.into_iter().flatten().collect(),
        })
    }
}

async fn switches_and_race(
    app: &App,
    name: &RoomName,
) -> Result<(Switches, Option<LastRace>), Problem> {
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let Some((room, _)) = room::store::load(&mut session, name, &[]).await? else {
        return Err(Problem::not_found(format!("there is no room {name}")));
    };
    let race = race::last(&mut session, room.id).await?;
    Ok((room.switches, race))
}

/// What became of an attempt of this room. One that no replica tells of may be of a replica that is gone.
async fn told(app: &App, name: &RoomName, attempt: Uuid) -> Option<AttemptView> {
    match peers::record(app, attempt).await {
        Some(record) => (record.room == name.as_str()).then(|| AttemptView::new(&record)),
        None => Some(AttemptView::untold()),
    }
}

#[derive(Template)]
#[template(path = "room.html")]
struct RoomTemplate {
    style: String,
    icon: String,
    script: String,
    modules: Vec<String>,
    room: String,
    projector: bool,
    view: &'static str,
    me: String,
    epoch: i64,
    replicas: Vec<ReplicaView>,
    ways: Vec<Way>,
    audit: AuditView,
    buyer: String,
    seats: SeatMap,
    wallets: WalletsView,
    parts: Parts,
}

#[derive(Template)]
#[template(path = "room_parts.html")]
struct PartsTemplate {
    view: &'static str,
    room: String,
    parts: Parts,
}

/// The parts of the page that are asked for again when something has happened.
struct Parts {
    summary: Summary,
    races: Vec<RaceButton>,
    last: Option<LastRaceView>,
    is_another: bool,
    attempts: Vec<AttemptView>,
    switches: Vec<SwitchView>,
    switches_as_drawn: String,
    locks: Vec<LockRow>,
}

impl Parts {
    fn new(app: &App, switches: &Switches, last: &Last) -> Self {
        let locks = shown_locks(app);
        let lock = switches.lock;
        let board = switchboard(switches, app.database.dialect(), &locks);
        Self {
            summary: Summary::new(switches, app.locks.why_not(lock)),
            races: race_buttons(last.race.as_ref()),
            last: last.race.as_ref().map(LastRaceView::new),
            is_another: last.is_another,
            attempts: last.attempts.clone(),
            switches_as_drawn: as_drawn(&board),
            switches: board,
            locks: lock_table(&locks, lock.as_str()),
        }
    }
}

/// A replica in the header.
struct ReplicaView {
    name: String,
    alive: bool,
    /// The same room there.
    link: Option<String>,
}

/// Through which replica an attempt goes.
struct Way {
    value: String,
    label: String,
    chosen: bool,
}

fn template(app: &App, found: Found, asked: Asked, place: &Place) -> RoomTemplate {
    let Found {
        room,
        replicas,
        last,
    } = found;
    let parts = Parts::new(app, &room.switches, &last);
    RoomTemplate {
        style: files::address("style.css"),
        icon: files::address("icon.svg"),
        script: files::address("room.js"),
        modules: files::modules(),
        projector: place.projector,
        view: place.view(),
        me: app.me.name.clone(),
        epoch: room.epoch,
        ways: ways(&replicas, &app.me.name),
        replicas: replicas
            .into_iter()
            .map(|replica| replica_view(replica, &app.me.name, &place.page()))
            .collect(),
        audit: AuditView::new(&room.audit, room.switches.locking),
        buyer: asked
            .buyer
            .map_or_else(|| SOMEBODY.to_owned(), |buyer| buyer.to_string()),
        wallets: WalletsView::new(&room.wallets, &room.audit),
        seats: SeatMap::new(room.seats, &room.audit.seats_sold_twice),
        room: room.room,
        parts,
    }
}

/// Through this replica, through another, or through all at once. One that is alone leaves no choice.
fn ways(replicas: &[Replica], me: &str) -> Vec<Way> {
    let alive: Vec<_> = replicas.iter().filter(|replica| replica.alive).collect();
    if alive.len() < 2 {
        return Vec::new();
    }
    let one = |replica: &&Replica| Way {
        value: replica.name.clone(),
        label: replica.name.clone(),
        chosen: replica.name == me,
    };
    let all = if alive.len() == 2 {
        "both at once"
    } else {
        "all at once"
    };
    let all = Way {
        value: via::ALL.to_owned(),
        label: all.to_owned(),
        chosen: false,
    };
    alive.iter().map(one).chain([all]).collect()
}

/// A replica tells its own address; only one that a browser can open becomes a link.
fn replica_view(replica: Replica, me: &str, page: &str) -> ReplicaView {
    let opens = ["http://", "https://"]
        .iter()
        .any(|scheme| replica.url.starts_with(scheme));
    let link = opens && replica.alive && replica.name != me;
    ReplicaView {
        alive: replica.alive,
        link: link.then(|| format!("{}{page}", replica.url.trim_end_matches('/'))),
        name: replica.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_cannot_mean_is_not_asked_for() {
        let asked = Asked::parse("attempt=4b0c5b8e-6a52-4a35-9a1f-3e6b7e0f8a11&buyer=Ana+M%C3%BC");
        assert!(!asked.attempts.is_empty());
        assert_eq!(asked.buyer.as_ref().map(Name::as_str), Some("Ana Mü"));
        for query in [
            "",
            "attempt=x&buyer=",
            "attempt&buyer=%00",
            "buyer=%ff",
            "race=last",
            "&=&%",
        ] {
            let asked = Asked::parse(query);
            assert!(
                asked.attempts.is_empty() && asked.buyer.is_none() && asked.race.is_none(),
                "{query}"
            );
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
            replica_view(replica, "A", "/rooms/main").link
        };
        let there = "http://127.0.0.1:3002";
        let page = "http://127.0.0.1:3002/rooms/main";
        assert_eq!(link(there, true).as_deref(), Some(page));
        assert_eq!(link(there, false), None);
        assert_eq!(link("javascript:alert(1)//", true), None);
    }
}
