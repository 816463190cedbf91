//! Running a race: what it needs, a reset, the requests, the releases, the audit.

use std::sync::Arc;

use super::needs::needs;
use super::track::Track;
use super::{Race, RaceResult};
use crate::app::App;
use crate::database::{CommitError, DatabaseError};
use crate::peers;
use crate::room::{self, Change, Changed, RoomName};
use crate::section::SectionError;

/// Why a race did not run, or not to its end.
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
    /// It began, and something failed on the way: the room was reset, and attempts may have been made.
    #[error(transparent)]
    Halfway(Box<SectionError>),
}

impl From<DatabaseError> for RaceError {
    fn from(error: DatabaseError) -> Self {
        Self::Section(error.into())
    }
}

/// Runs a race in a task of its own, to its end, whoever hangs up.
///
/// # Errors
/// [`RaceError`]; only [`RaceError::Halfway`] leaves something behind.
pub async fn run(app: &Arc<App>, name: &RoomName, race: Race) -> Result<RaceResult, RaceError> {
    let under_way = app.races.begin(name).ok_or(RaceError::UnderWay)?;
    let (app, name) = (Arc::clone(app), name.clone());
    let task = tokio::spawn(async move {
        let result = run_to_the_end(&app, &name, race).await;
        drop(under_way);
        result
    });
    let broken = |error: tokio::task::JoinError| SectionError::Internal(error.to_string());
    task.await
        .unwrap_or_else(|error| Err(RaceError::Halfway(Box::new(broken(error)))))
}

async fn run_to_the_end(app: &App, name: &RoomName, race: Race) -> Result<RaceResult, RaceError> {
    let seats = needs(app, name, race).await?;
    let (replicas, absent) = peers::replicas(app)
        .await?
        .into_iter()
        .partition(|replica| replica.alive);
    let track = Track::new(app, name, replicas, absent)?;
    if track.is_taken().await {
        return Err(RaceError::UnderWay);
    }
    let _told = app.journal.race_begins(name.as_str(), race.as_str());
    reset(app, name).await?;
    let halfway = |error| RaceError::Halfway(Box::new(error));
    track.run(race, &seats).await.map_err(halfway)
}

async fn reset(app: &App, name: &RoomName) -> Result<(), RaceError> {
    match room::change(&app.database, name, &Change::Reset).await {
        Ok(Changed::NoSuchRoom) => Err(SectionError::NotFound(format!("room {name}")).into()),
        Ok(_) => {
            app.journal.room_changed(name.as_str());
            Ok(())
        }
        Err(CommitError::Refused(error)) => Err(error.into()),
        Err(CommitError::Unknown(error)) => {
            Err(SectionError::OutcomeUnknown(error.to_string()).into())
        }
    }
}
