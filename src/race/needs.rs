//! What a room must have for a race: seats, wallets with enough in them, a wait that is long enough.

use super::{Race, RaceError};
use crate::app::App;
use crate::booking::Seat;
use crate::database::fence::{RowId, Table};
use crate::database::{REQUEST_LIMIT, Session};
use crate::room::{self, Room, RoomName};
use crate::section::SectionError;
use crate::wallet::Money;

/// The seats that `crowd` is about.
const CROWDED_SEATS: usize = 10;

/// `paused-holder`: how much longer than the lease Ben must be ready to wait.
const BEYOND_THE_LEASE_MS: u32 = 1000;

/// Looks whether the room has what the race needs, and brings the seats that it is about.
pub(super) async fn needs(
    app: &App,
    name: &RoomName,
    race: Race,
) -> Result<Vec<String>, RaceError> {
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
