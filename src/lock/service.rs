//! A lock system with the layers above it: what the rest of a program uses.
//!
//! One service per lock system and process: the waiters of a key stand in one line only if they use the same one.
//! It promises that a caller may leave at any time, by dropping the future that waits or what it holds; both give
//! the lock back promptly.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{runtime::Handle, sync::oneshot, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    error::LockError,
    gauge::Gauge,
    guarantees::LockName,
    held::Held,
    many::Keys,
    queue::Queue,
    releasing::Repeats,
    system::{LockSystem, ReleaseMode},
    trips::Trips,
    waiting::{self, Waiting},
};

/// The shortest lease that can be wished for. Below it the margin of the deadline and the timers eat it up.
pub const SHORTEST_TTL: Duration = Duration::from_millis(10);

/// The longest lease and the longest wait that can be wished for.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a caller wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What to lock: all or nothing.
    pub keys: Keys,
    /// How long a lease lasts unrenewed: [`SHORTEST_TTL`] to [`LONGEST`]. A system may raise it.
    pub ttl: Duration,
    /// Whether the lease is renewed while it is held.
    pub renew: bool,
    /// Whether [`Held::freeze`] may be called, so that its lease must not hang on one that others keep alive.
    pub may_freeze: bool,
    /// How long to wait, in all: at most [`LONGEST`]. Zero asks once.
    pub wait: Duration,
    /// How to wait.
    pub waiting: Waiting,
    /// How to give back.
    pub release: ReleaseMode,
    /// Counts the requests to the lock system. Keep a clone to read it after a failure.
    pub trips: Trips,
}

/// Acquires locks of one lock system. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LockService {
    pub(super) shared: Arc<Shared>,
}

/// What the layers share.
pub(super) struct Shared {
    pub(super) system: Arc<dyn LockSystem>,
    /// Kept, so that what is held can be dropped outside of it.
    pub(super) runtime: Handle,
    /// Acquisitions and releases: what must not be cut off at the end.
    background: TaskTracker,
    pub(super) repeats: Repeats,
    pub(super) queue: Queue,
    pub(super) held: Gauge,
    pub(super) waiting: Gauge,
}

impl LockService {
    /// Puts the layers on a lock system.
    ///
    /// # Panics
    /// Outside of a Tokio runtime, as [`Handle::current`] does.
    pub fn new(system: Arc<dyn LockSystem>) -> Self {
        let background = TaskTracker::new();
        // Only a closed tracker can be waited for. It takes new tasks all the same.
        background.close();
        Self {
            shared: Arc::new(Shared {
                system,
                runtime: Handle::current(),
                background,
                repeats: Repeats::default(),
                queue: Queue::default(),
                held: Gauge::default(),
                waiting: Gauge::default(),
            }),
        }
    }

    /// Acquires all keys of a wish. Dropping this future ends the wait, and frees what was granted meanwhile.
    ///
    /// # Errors
    /// [`LockError`] says which kind of failure it is; none of them leaves a lock behind for longer than its lease.
    pub async fn acquire(&self, wish: Wish) -> Result<Held, LockError> {
        wish.check()?;
        let stop = CancellationToken::new();
        let _stop_when_dropped = stop.clone().drop_guard();
        let acquisition = waiting::acquire(self.shared.clone(), wish, stop);
        let (result, taken) = oneshot::channel();
        self.shared.spawn(async move {
            // If nobody takes the result, it is dropped here, where `settle` still sees it, and gives itself back.
            drop(result.send(acquisition.await));
        });
        taken.await.unwrap_or(Err(LockError::Cancelled))
    }

    /// Which lock system this is.
    pub fn name(&self) -> LockName {
        self.shared.system.name()
    }

    /// The lock system itself.
    pub fn system(&self) -> &Arc<dyn LockSystem> {
        &self.shared.system
    }

    /// How many are held now.
    pub fn held(&self) -> usize {
        self.shared.held.get()
    }

    /// How many acquisitions are under way now.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.get()
    }

    /// How many keys have a line of waiters now.
    pub fn lines(&self) -> usize {
        self.shared.queue.lines()
    }

    /// Waits until nothing is under way any more, at most for `limit`. For the end of the process: call it when
    /// nobody acquires any more. Says whether all was done.
    pub async fn settle(&self, limit: Duration) -> bool {
        timeout(limit, self.shared.background.wait()).await.is_ok()
    }
}

impl Wish {
    fn check(&self) -> Result<(), LockError> {
        if self.ttl < SHORTEST_TTL || self.ttl > LONGEST {
            return Err(LockError::bad_setting(format!(
                "a lease lasts {} ms to {} ms",
                SHORTEST_TTL.as_millis(),
                LONGEST.as_millis()
            )));
        }
        if self.wait > LONGEST {
            let longest = LONGEST.as_millis();
            return Err(LockError::bad_setting(format!(
                "a wait lasts at most {longest} ms"
            )));
        }
        Ok(())
    }
}

impl Shared {
    /// Spawns a task that [`LockService::settle`] waits for.
    pub(super) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.background.spawn_on(task, &self.runtime)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("system", &self.system.name())
            .finish_non_exhaustive()
    }
}
