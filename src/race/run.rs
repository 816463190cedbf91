//! Running a race: what it needs, a reset, the requests, the releases, the audit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::contenders::Contender;
use super::{LastRace, Race, RaceResult, RacedAttempt, store};
use crate::app::{App, REQUEST_LIMIT};
use crate::booking::Seat;
use crate::database::fence::{RowId, Table};
use crate::database::{CommitError, DatabaseError, Session};
use crate::name::Name;
use crate::peers::{self, Replica};
use crate::room::{self, Change, Changed, Room, RoomName};
use crate::section::SectionError;
use crate::wallet::Money;

/// The buyers of `crowd`, and the seats that they crowd on.
const CROWD: usize = 50;
const CROWDED_SEATS: usize = 10;

/// `paused-holder`: how much longer than the lease Ben must be ready to wait.
const BEYOND_THE_LEASE_MS: u32 = 1000;

/// How long the audit waits for the race's own releases.
const RELEASES_LIMIT: Duration = Duration::from_secs(1);

/// How long a holder is waited for at its gate: it reaches it as soon as it has its lock.
const HOLDER_LIMIT: Duration = Duration::from_secs(70);

/// How often a condition on other replicas is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why a race did not run.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// The room lacks something.
    #[error("{0}")]
    Needs(String),
    /// A race is under way in this room.
    #[error("a race is under way in this room")]
    UnderWay,
    /// The room is not there, or the database.
    #[error(transparent)]
    Section(#[from] SectionError),
}

impl From<DatabaseError> for RaceError {
    fn from(error: DatabaseError) -> Self {
        Self::Section(error.into())
    }
}

/// Runs a race in a task of its own, to its end, whoever hangs up.
///
/// # Errors
/// [`RaceError`]; nothing was reset then, unless the database failed on the way.
pub async fn run(app: &Arc<App>, name: &RoomName, race: Race) -> Result<RaceResult, RaceError> {
    let under_way = app.races.begin(name).ok_or(RaceError::UnderWay)?;
    let (app, name) = (Arc::clone(app), name.clone());
    let task = tokio::spawn(async move {
        let result = run_to_the_end(&app, &name, race).await;
        drop(under_way);
        result
    });
    task.await
        .unwrap_or_else(|error| Err(SectionError::Internal(error.to_string()).into()))
}

async fn run_to_the_end(
    app: &Arc<App>,
    name: &RoomName,
    race: Race,
) -> Result<RaceResult, RaceError> {
    let seats = needs(app, name, race).await?;
    let replicas = live_replicas(app).await?;
    let _told = app.journal.race_begins(name.as_str(), race.as_str());
    reset(app, name).await?;
    let track = Track {
        app,
        name,
        replicas: &replicas,
    };
    let attempts = match race {
        Race::OneSeat => {
            track
                .at_once(vec![
                    Contender::buyer("Ana", "A1"),
                    Contender::buyer("Ben", "A1"),
                ])
                .await
        }
        Race::LostUpdate => {
            let to = |taker| Contender::giver("alice", taker, "80.00");
            track.at_once(vec![to("bob"), to("carol")]).await
        }
        Race::Crossing => {
            let there = Contender::giver("alice", "bob", "10.00");
            track
                .at_once(vec![there, Contender::giver("bob", "alice", "10.00")])
                .await
        }
        Race::Crowd => {
            let crowd = (0..CROWD)
                .map(|i| Contender::buyer(&format!("buyer {i}"), &seats[i % seats.len()]));
            track.at_once(crowd.collect()).await
        }
        Race::PausedHolder => track.paused_holder().await?,
    };
    wait_for_releases(app, name).await?;
    finish(app, name, race, attempts).await
}

/// Looks whether the room has what the race needs, and brings the seats that it is about.
async fn needs(app: &App, name: &RoomName, race: Race) -> Result<Vec<String>, RaceError> {
    let wallet = |name: &str| RowId {
        table: Table::Wallet,
        name: name.to_owned(),
    };
    let rows = match race {
        Race::OneSeat | Race::PausedHolder => vec![Seat::row("A1")],
        Race::LostUpdate => vec![wallet("alice"), wallet("bob"), wallet("carol")],
        Race::Crossing => vec![wallet("alice"), wallet("bob")],
        Race::Crowd => Vec::new(),
    };
    let mut session = app.database.read(REQUEST_LIMIT).await?;
    let Some((room, there)) = room::store::load(&mut session, name, &rows).await? else {
        return Err(SectionError::NotFound(format!("room {name}")).into());
    };
    if let Some((missing, _)) = rows.iter().zip(there).find(|(_, there)| !there) {
        return Err(RaceError::Needs(format!(
            "this race needs the {} {}",
            missing.table.name(),
            missing.name
        )));
    }
    match race {
        Race::OneSeat => Ok(Vec::new()),
        Race::LostUpdate => with_money(&mut session, &room, &[("alice", "80.00")]).await,
        Race::Crossing => {
            with_money(&mut session, &room, &[("alice", "10.00"), ("bob", "10.00")]).await
        }
        Race::Crowd => {
            crowded_seats(room::store::first_seats(&mut session, room.id, CROWDED_SEATS).await?)
        }
        Race::PausedHolder => long_enough_wait(app, &room).map(|()| Vec::new()),
    }
}

/// A race begins with the opening balances: each giver must have been opened with enough.
async fn with_money(
    session: &mut Session,
    room: &Room,
    needed: &[(&str, &str)],
) -> Result<Vec<String>, RaceError> {
    let openings = room::store::openings(session, room.id).await?;
    for (wallet, amount) in needed {
        let unread = |_| SectionError::Internal("an amount of a race".to_owned());
        let enough: Money = amount.parse().map_err(unread)?;
        if !openings
            .iter()
            .any(|(name, opening)| name == wallet && *opening >= enough)
        {
            let needs = format!("this race needs {wallet} to be opened with at least {amount}");
            return Err(RaceError::Needs(needs));
        }
    }
    Ok(Vec::new())
}

fn crowded_seats(seats: Vec<String>) -> Result<Vec<String>, RaceError> {
    if seats.len() < CROWDED_SEATS {
        return Err(RaceError::Needs(format!(
            "this race needs {CROWDED_SEATS} seats, the room has {}",
            seats.len()
        )));
    }
    Ok(seats)
}

fn long_enough_wait(app: &App, room: &Room) -> Result<(), RaceError> {
    if !app.failpoints {
        return Err(SectionError::FailpointsOff.into());
    }
    let needed = room.switches.ttl_ms + BEYOND_THE_LEASE_MS;
    if room.switches.wait_ms < needed {
        return Err(RaceError::Needs(format!(
            "this race needs wait_ms of at least ttl_ms + {BEYOND_THE_LEASE_MS} = {needed}, so that Ben outwaits the \
             lease; it is {}",
            room.switches.wait_ms
        )));
    }
    Ok(())
}

async fn live_replicas(app: &App) -> Result<Vec<Replica>, RaceError> {
    let mut replicas = peers::replicas(app).await?;
    replicas.retain(|replica| replica.alive);
    if replicas.is_empty() {
        return Err(RaceError::Needs(
            "this race needs a replica that answers".to_owned(),
        ));
    }
    Ok(replicas)
}

async fn reset(app: &App, name: &RoomName) -> Result<(), RaceError> {
    match room::change(&app.database, name, &Change::Reset)
        .await
        .map_err(not_committed)?
    {
        Changed::NoSuchRoom => Err(SectionError::NotFound(format!("room {name}")).into()),
        _ => {
            app.journal.room_changed(name.as_str());
            Ok(())
        }
    }
}

fn not_committed(error: CommitError) -> DatabaseError {
    match error {
        CommitError::Refused(error) | CommitError::Unknown(error) => error,
    }
}

/// Where a race is run.
struct Track<'a> {
    app: &'a Arc<App>,
    name: &'a RoomName,
    replicas: &'a [Replica],
}

impl Track<'_> {
    /// Sends all at once, each to the next replica in turn.
    async fn at_once(&self, contenders: Vec<Contender>) -> Vec<RacedAttempt> {
        let racing = contenders
            .into_iter()
            .enumerate()
            .map(|(index, contender)| self.send(contender, index));
        join_all(racing).await
    }

    fn send(&self, contender: Contender, index: usize) -> impl Future<Output = RacedAttempt> {
        contender.race(
            self.app,
            self.name,
            &self.replicas[index % self.replicas.len()],
        )
    }

    /// Ana holds the lock and sleeps before her write; Ben asks, and goes on when her lease is over; then she wakes.
    async fn paused_holder(&self) -> Result<Vec<RacedAttempt>, RaceError> {
        let gate = format!("paused-holder-{}", Uuid::new_v4());
        let ana = Contender::buyer("Ana", "A1").frozen_at(&gate);
        let ana_is = ana.attempt;
        let gate: Name = gate
            .parse()
            .map_err(|_| SectionError::Internal("a gate's name does not fit".to_owned()))?;
        let ended = CancellationToken::new();
        let ana = async {
            let got = self.send(ana, 0).await;
            ended.cancel();
            got
        };
        let ben = async {
            self.until_at_gate(ana_is, &gate, &ended).await?;
            // She never reached her gate: her answer says why, and there is nobody to outwait.
            if ended.is_cancelled() {
                return Ok(None);
            }
            let ben = self.send(Contender::buyer("Ben", "A1"), 1).await;
            peers::open(self.app, self.name.as_str(), &gate).await?;
            Ok::<_, DatabaseError>(Some(ben))
        };
        let (ana, ben) = tokio::join!(ana, ben);
        Ok([Some(ana), ben?].into_iter().flatten().collect())
    }

    /// Returns when the attempt stands at the gate, has ended, or will not come any more.
    async fn until_at_gate(
        &self,
        attempt: Uuid,
        gate: &Name,
        ended: &CancellationToken,
    ) -> Result<(), DatabaseError> {
        let deadline = Instant::now() + HOLDER_LIMIT;
        while Instant::now() < deadline && !ended.is_cancelled() {
            let waiting = peers::waiting_at(self.app, self.name.as_str(), gate).await?;
            if waiting.iter().any(|waiter| waiter.attempt == attempt) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

async fn wait_for_releases(app: &App, name: &RoomName) -> Result<(), RaceError> {
    let deadline = Instant::now() + RELEASES_LIMIT;
    while Instant::now() < deadline && peers::leases_left(app, name.as_str()).await? != Some(0) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

async fn finish(
    app: &App,
    name: &RoomName,
    race: Race,
    attempts: Vec<RacedAttempt>,
) -> Result<RaceResult, RaceError> {
    let gone = || SectionError::NotFound(format!("room {name}"));
    let leases_left = peers::leases_left(app, name.as_str()).await?;
    let mut snapshot = app.database.snapshot(REQUEST_LIMIT).await?;
    let (room, _) = room::store::load(&mut snapshot, name, &[])
        .await?
        .ok_or_else(gone)?;
    let audit = crate::audit::audit(&mut snapshot, room.id, leases_left).await?;
    snapshot.rollback().await;

    let records = join_all(
        attempts
            .iter()
            .map(|raced| peers::record(app, raced.attempt)),
    )
    .await;
    let last = LastRace {
        race,
        attempts: attempts.clone(),
        sentence: audit.sentence.clone(),
        clean: audit.clean,
        records: records.into_iter().flatten().collect(),
    };
    let mut transaction = app.database.begin(REQUEST_LIMIT).await?;
    store::keep(&mut transaction, room.id, &last).await?;
    transaction.commit().await.map_err(not_committed)?;
    Ok(RaceResult {
        race,
        attempts,
        audit,
    })
}
