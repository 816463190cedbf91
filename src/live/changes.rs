//! Changes of seats, wallets, audit and switches, read from the database while somebody watches.
//!
//! Promises: a change is told at most [`LOOK_ANYWAY`] and one look after its commit, whichever replica made it and
//! whether or not it was heard of, and [`LONGEST_REST`] where looks take long; looks take a small share of the time, as
//! long as one takes less than a fiftieth of that. A database that does not answer delays changes and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::board::Board;
use super::event::Event;
use super::steps::Others;
use super::store::{self, Mark};
use super::view::{self, Layout, LiveAudit, News, Seats, View};
use crate::app::App;
use crate::audit;
use crate::database::{DatabaseError, Session};
use crate::peers::{self, Replica};
use crate::room::{self, RoomName};

/// The shortest time between two looks: what changes faster is told together.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The longest time between two looks, for changes of which nothing was heard.
const LOOK_ANYWAY: Duration = Duration::from_millis(400);

/// A look is followed by a rest of so many times as long: looking must not slow what is looked at.
const REST: u32 = 50;

/// The longest rest, so that a change is still seen within a second.
const LONGEST_REST: Duration = Duration::from_millis(800);

/// How often the table of replicas is read: a new one is rare.
const REPLICAS_EVERY: Duration = Duration::from_secs(1);

/// How long a look waits for the database.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// Tells the changes of a room, for ever.
pub(super) async fn tell(
    app: Arc<App>,
    room: RoomName,
    board: Arc<Board>,
    replicas: watch::Sender<Vec<Replica>>,
    mut others: watch::Receiver<Others>,
) {
    let mut changes = Changes {
        app,
        room,
        board,
        replicas,
        asked_for_replicas: None,
        seen: None,
        leases_left: None,
    };
    loop {
        let began = Instant::now();
        let heard = others.borrow_and_update().clone();
        if let Err(error) = changes.look(&heard).await {
            tracing::debug!(%error, room = %changes.room, "cannot look at a room that is watched");
        }
        let rest = (began.elapsed() * REST).clamp(LOOK_EVERY, LONGEST_REST);
        tokio::time::sleep_until((began + rest).into()).await;
        let anyway = tokio::time::sleep_until((began + LOOK_ANYWAY).into());
        tokio::select! {
            () = anyway => {}
            // An error means that the steps are no longer told: this task ends with theirs.
            _ = others.changed() => {}
        }
    }
}

struct Changes {
    app: Arc<App>,
    room: RoomName,
    board: Arc<Board>,
    replicas: watch::Sender<Vec<Replica>>,
    asked_for_replicas: Option<Instant>,
    seen: Option<(Mark, View)>,
    /// As it was told last.
    leases_left: Option<u64>,
}

impl Changes {
    async fn look(&mut self, others: &Others) -> Result<(), DatabaseError> {
        let leases_left = others
            .leases_left
            .map(|theirs| theirs + self.app.leases_left.of(self.room.as_str()));
        let mut session = self.app.database.read(LOOK_LIMIT).await?;
        let mark = store::mark(&mut session, &self.room).await?;
        drop(session);
        match (mark, &self.seen) {
            (None, _) => self.room_is_gone(),
            (Some(mark), Some((seen, _))) if mark == *seen => self.tell_leases_left(leases_left),
            _ => self.look_at_all(leases_left).await?,
        }
        self.read_replicas().await
    }

    fn room_is_gone(&mut self) {
        if self.seen.take().is_some() {
            self.board.pin_gap(&view::gap());
        }
    }

    async fn look_at_all(&mut self, leases_left: Option<u64>) -> Result<(), DatabaseError> {
        let seen = self.seen.as_ref();
        let Some((mark, view)) = read(&self.app, &self.room, seen, leases_left).await? else {
            self.room_is_gone();
            return Ok(());
        };
        let mut news = News::between(self.seen.as_ref().map(|(_, view)| view), &view);
        news.whole(audit_event(&view.audit));
        self.board.pin_and_stand(&news.events, &news.standing);
        self.leases_left = leases_left;
        self.seen = Some((mark, view));
        Ok(())
    }

    /// Leases come and go without a change in the database.
    fn tell_leases_left(&mut self, leases_left: Option<u64>) {
        let Some((_, view)) = &mut self.seen else {
            return;
        };
        if self.leases_left != leases_left {
            self.leases_left = leases_left;
            view.audit.audit.leases_left = leases_left;
            self.board.pin_whole(&audit_event(&view.audit));
        }
    }

    async fn read_replicas(&mut self) -> Result<(), DatabaseError> {
        let now = Instant::now();
        if self
            .asked_for_replicas
            .is_some_and(|asked| now < asked + REPLICAS_EVERY)
        {
            return Ok(());
        }
        let replicas = peers::others(&self.app).await?;
        // That there are no others is news, too.
        let is_first = self.asked_for_replicas.replace(now).is_none();
        self.replicas.send_if_modified(|known| {
            let address = |replica: &Replica| (replica.name.clone(), replica.url.clone());
            let same = known.iter().map(address).eq(replicas.iter().map(address));
            *known = replicas;
            is_first || !same
        });
        Ok(())
    }
}

fn audit_event(audit: &LiveAudit) -> Event {
    Event::new("audit", audit)
}

/// The whole room of one moment, after what was seen of it.
async fn read(
    app: &App,
    name: &RoomName,
    seen: Option<&(Mark, View)>,
    leases_left: Option<u64>,
) -> Result<Option<(Mark, View)>, DatabaseError> {
    let mut snapshot = app.database.snapshot(LOOK_LIMIT).await?;
    let Some((room, _)) = room::store::load(&mut snapshot, name, &[]).await? else {
        return Ok(None);
    };
    let Some(mark) = store::mark(&mut snapshot, name).await? else {
        return Ok(None);
    };
    let audit = audit::audit(&mut snapshot, room.id, leases_left).await?;
    let wallets = room::store::wallets(&mut snapshot, room.id).await?;
    let layout = Layout {
        room_id: room.id,
        extent: store::extent(&mut snapshot, room.id).await?,
        wallets: wallets.iter().map(|wallet| wallet.wallet.clone()).collect(),
    };
    let seats = seats(&mut snapshot, room.id, &mark, seen).await?;
    snapshot.rollback().await;
    let view = View {
        layout,
        epoch: room.epoch,
        switches: room.switches,
        seats,
        wallets: view::with_expected(wallets, &audit),
        audit: LiveAudit::of(audit),
    };
    Ok(Some((mark, view)))
}

/// Those that are not free. Only those are read that were booked since the last look, if this cannot miss any: a
/// booking with a lower number may be committed after one with a higher one, and then the count tells.
async fn seats(
    snapshot: &mut Session,
    room_id: i64,
    mark: &Mark,
    seen: Option<&(Mark, View)>,
) -> Result<Seats, DatabaseError> {
    if let Some((earlier, view)) = seen
        && let Some(new) = mark.bookings_since(earlier)
    {
        let later = store::seats(snapshot, room_id, view.seats.last_booking).await?;
        let seats = view.seats.and(later);
        if seats.bookings() - view.seats.bookings() == new {
            return Ok(seats);
        }
    }
    store::seats(snapshot, room_id, 0).await
}
