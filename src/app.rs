//! What a request may reach: the database, the locks, the journal, the other replicas, and who I am.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::database::Database;
use crate::journal::Journal;
use crate::live::Live;
use crate::load::desk::Desk;
use crate::metrics::Metrics;
use crate::peers::Peers;
use crate::race::Running;
use crate::section::{Gates, LeasesLeft, Locks, SectionError};

/// How many attempts may be under way on one replica.
const MOST_ATTEMPTS: usize = 5_000;

/// How long attempts that hold locks may go on after a SIGTERM.
pub const HOLDERS_GRACE: Duration = Duration::from_secs(3);

/// This replica.
#[derive(Debug, Clone)]
pub struct Me {
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

/// What a request may reach.
#[derive(Debug)]
pub struct App {
    /// This replica.
    pub me: Me,
    /// The database of all replicas.
    pub database: Database,
    /// The lock systems that this replica has.
    pub locks: Locks,
    /// What attempts did here.
    pub journal: Journal,
    /// Who waits where, here.
    pub gates: Gates,
    /// Leases of ended attempts that may still stand.
    pub leases_left: LeasesLeft,
    /// What is counted and measured here.
    pub metrics: Metrics,
    /// The other replicas.
    pub peers: Peers,
    /// The rooms that somebody watches here.
    pub live: Live,
    /// The races that this replica runs.
    pub races: Running,
    /// The load runs that are started at a page of this replica.
    pub loads: Arc<Desk>,
    /// Whether requests may name failpoints.
    pub failpoints: bool,
    /// Names, besides localhost and the advertised one, under which changes may be asked for.
    pub allowed_hosts: Vec<String>,
    /// How many attempts are under way.
    pub attempts: Attempts,
    /// The stop of this replica.
    pub shutdown: Shutdown,
    /// Where work goes on after its request was answered.
    pub runtime: tokio::runtime::Handle,
}

/// Counts the attempts that are under way, up to a limit.
#[derive(Debug)]
pub struct Attempts {
    free: Arc<Semaphore>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(MOST_ATTEMPTS)),
        }
    }
}

impl Attempts {
    /// Begins one, until the value is dropped.
    ///
    /// # Errors
    /// [`SectionError::TooManyAttempts`].
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, SectionError> {
        let entered = Arc::clone(&self.free).try_acquire_owned();
        entered.map_err(|_| SectionError::TooManyAttempts(MOST_ATTEMPTS))
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        MOST_ATTEMPTS - self.free.available_permits()
    }

    /// Returns when none is under way.
    pub async fn ended(&self) {
        // Nobody closes the semaphore.
        let _ = self.free.acquire_many(MOST_ATTEMPTS as u32).await;
    }
}

/// A stop in two steps: first nobody waits any longer, then nobody goes on.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
}

impl Shutdown {
    /// Who waits for a lock stops waiting.
    pub fn begin(&self) {
        self.soft.cancel();
    }

    /// Who has not sent a commit is cut short.
    pub fn insist(&self) {
        self.hard.cancel();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Cancelled when nobody may wait any longer.
    pub fn soft_token(&self) -> CancellationToken {
        self.soft.child_token()
    }

    /// Returns when nobody may wait any longer.
    pub async fn soft(&self) {
        self.soft.cancelled().await;
    }

    /// Returns when nobody may go on.
    pub async fn hard(&self) {
        self.hard.cancelled().await;
    }
}
