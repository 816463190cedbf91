//! Changing a room: one transaction, tried again, within the limit of a request, when the database ended it to break a
//! deadlock with attempts that take rows as given.

use std::time::{Duration, Instant};

use super::{Layout, RoomName, Switches, SwitchesPatch, store};
use crate::database::{CommitError, Database, DatabaseError, REQUEST_LIMIT, Transaction};

/// What is to be changed.
#[derive(Debug, Clone)]
pub enum Change {
    /// Make the room, or lay it out anew with everything in it gone.
    LayOut(Layout, Switches),
    /// Set some switches.
    Switch(SwitchesPatch),
    /// Free all seats, fill all wallets as opened, forget all attempts.
    Reset,
    /// Delete the room with all that belongs to it.
    Delete,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The room was made.
    Made,
    /// The room was changed.
    Done,
    /// There is no such room.
    NoSuchRoom,
}

/// Changes a room.
///
/// # Errors
/// [`CommitError::Unknown`] when the commit was not answered; otherwise nothing was changed.
pub async fn change(
    database: &Database,
    name: &RoomName,
    change: &Change,
) -> Result<Changed, CommitError> {
    let until = Instant::now() + REQUEST_LIMIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match in_transaction(database, name, change, left).await {
            Err(CommitError::Refused(DatabaseError::Deadlock(_))) if Instant::now() < until => {}
            settled => return settled,
        }
    }
}

async fn in_transaction(
    database: &Database,
    name: &RoomName,
    change: &Change,
    limit: Duration,
) -> Result<Changed, CommitError> {
    let mut transaction = database.begin(limit).await.map_err(CommitError::Refused)?;
    match apply(&mut transaction, name, change).await {
        Ok(changed) => transaction.commit().await.map(|()| changed),
        Err(error) => {
            transaction.rollback().await;
            Err(CommitError::Refused(error))
        }
    }
}

async fn apply(
    transaction: &mut Transaction,
    name: &RoomName,
    change: &Change,
) -> Result<Changed, DatabaseError> {
    let found = match change {
        Change::LayOut(layout, switches) => {
            let is_new = store::put(transaction, name, layout, switches).await?;
            return Ok(if is_new { Changed::Made } else { Changed::Done });
        }
        Change::Switch(patch) => {
            store::change_switches(transaction, name, |before| patch.apply(before)).await?
        }
        Change::Reset => store::reset(transaction, name).await?,
        Change::Delete => store::delete(transaction, name).await?,
    };
    Ok(if found {
        Changed::Done
    } else {
        Changed::NoSuchRoom
    })
}
