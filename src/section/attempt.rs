//! One try to book or to transfer: who it is, what it has used up, and the task that it runs in.
//!
//! An attempt runs to its end in a task of its own, whoever hangs up. Only a stop of the replica cuts it short, and
//! never once its commit was sent.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tracing::Instrument;
use uuid::Uuid;

use super::SectionError;
use super::failpoint::{AtGate, Failpoint, Point};
use crate::app::App;
use crate::journal::{Entry, Record, Step, StepKind};
use crate::lock::{Held, LockName, Trips};
use crate::room::{Room, RoomName};

/// What a statement may take beyond what is left of `wait_ms`.
const DATABASE_GRACE: Duration = Duration::from_secs(1);

/// How often an attempt begins anew before it gives up with what stopped it.
const MOST_BEGINNINGS: u32 = 20;

/// How long an attempt that begins anew waits for its own releases.
const RELEASE_LIMIT: Duration = Duration::from_secs(1);

/// How an attempt ended that ran into a fault of ours.
const BROKEN: &str = "internal";

/// How long the result of a commit is waited for when the replica is stopping.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// To book a seat.
    Booking,
    /// To move money.
    Transfer,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Booking => "booking",
            Self::Transfer => "transfer",
        }
    }
}

/// What an attempt is about, before it has begun.
#[derive(Debug, Clone)]
pub struct Intent {
    /// Its UUID: the client's or one of ours.
    pub attempt: Uuid,
    /// Its kind.
    pub kind: Kind,
    /// The room.
    pub room: RoomName,
    /// The buyer, or the giver of a transfer.
    pub who: String,
    /// What is tried, in words.
    pub what: String,
    /// Where it is to wait.
    pub pause: Option<Failpoint>,
}

/// An attempt under way.
#[derive(Debug)]
pub struct Attempt {
    pub(super) app: Arc<App>,
    /// Its UUID.
    pub id: Uuid,
    /// The room.
    pub room: RoomName,
    /// Its record in the journal.
    entry: Entry,
    kind: Kind,
    who: String,
    pause: Mutex<Option<Failpoint>>,
    clock: Mutex<Clock>,
    pub(super) trips: Trips,
    /// Releases of earlier beginnings that may still be under way.
    releasing: Mutex<Vec<JoinHandle<()>>>,
    /// From here on nothing cuts the attempt short.
    pub(super) commit_sent: AtomicBool,
}

/// What an attempt has used up so far.
#[derive(Debug, Default)]
struct Clock {
    beginnings: u32,
    /// The lock system that is asked, if one is.
    lock: Option<LockName>,
    waited: Duration,
    hold: Duration,
    work: Duration,
    granted: Option<Instant>,
    began_work: Option<Instant>,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct End {
    /// `booked`, `transferred` or the last word of a problem's type.
    pub word: String,
    /// Why it certainly did not happen, if it did not.
    pub why_not: Option<String>,
}

/// Where the time of an attempt went.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Waiting for locks.
    pub wait: Duration,
    /// From the grant of all locks to the commit's result.
    pub hold: Duration,
    /// From the first read to the commit's result, with locks or without.
    pub work: Duration,
    /// Requests to the lock system.
    pub trips: u32,
}

/// Runs an attempt in a task of its own and waits for it. The task notes the end, as `end`
/// tells it, in the journal and in one line of the log, whoever still waits.
///
/// # Errors
/// What the walk ends with; [`SectionError::ShuttingDown`] when the replica stopped before the commit was sent.
pub async fn run<T, E, W>(
    app: Arc<App>,
    intent: Intent,
    end: impl FnOnce(&Result<T, E>) -> End + Send + 'static,
    walk: impl FnOnce(Arc<Attempt>) -> W + Send + 'static,
) -> (Result<T, E>, Timing)
where
    T: Send + 'static,
    E: From<SectionError> + Send + 'static,
    W: Future<Output = Result<T, E>> + Send,
{
    // Only where each step is told: to enter a span at every poll of every statement costs as much as the line itself.
    let span = tracing::debug_span!("attempt", id = %intent.attempt, room = %intent.room);
    let attempt = match Attempt::begin(app, intent) {
        Ok(attempt) => attempt,
        Err(error) => return (Err(error.into()), Timing::default()),
    };
    let task = tokio::spawn({
        let attempt = Arc::clone(&attempt);
        async move {
            let result = attempt.to_the_end(walk).await;
            attempt.note(&end(&result));
            result
        }
        .instrument(span)
    });
    let result = task.await.unwrap_or_else(|lost| {
        let error = if attempt.commit_sent.load(Ordering::SeqCst) {
            SectionError::OutcomeUnknown(lost.to_string())
        } else if lost.is_panic() {
            SectionError::Internal("the attempt ended in a fault of ours".to_owned())
        } else {
            SectionError::ShuttingDown
        };
        Err(error.into())
    });
    (result, attempt.timing())
}

impl Drop for Attempt {
    /// One that broke before it could note its end has ended, too.
    fn drop(&mut self) {
        self.app.journal.end(self.entry, BROKEN);
    }
}

impl Attempt {
    fn begin(app: Arc<App>, intent: Intent) -> Result<Arc<Self>, SectionError> {
        if intent.pause.is_some() && !app.failpoints {
            return Err(SectionError::FailpointsOff);
        }
        let entry = app.journal.begin(Record {
            attempt: intent.attempt,
            replica: app.me.name.clone(),
            room: intent.room.to_string(),
            who: intent.who.clone(),
            what: intent.what,
            outcome: None,
            steps: Vec::new(),
        });
        Ok(Arc::new(Self {
            app,
            entry,
            id: intent.attempt,
            room: intent.room,
            kind: intent.kind,
            who: intent.who,
            pause: Mutex::new(intent.pause),
            clock: Mutex::default(),
            trips: Trips::default(),
            releasing: Mutex::default(),
            commit_sent: AtomicBool::new(false),
        }))
    }

    async fn to_the_end<T, E, W>(
        self: &Arc<Self>,
        walk: impl FnOnce(Arc<Self>) -> W,
    ) -> Result<T, E>
    where
        E: From<SectionError>,
        W: Future<Output = Result<T, E>>,
    {
        if self.app.shutdown.has_begun() {
            return Err(SectionError::ShuttingDown.into());
        }
        let _under_way = self.app.attempts.enter()?;
        let walking = walk(Arc::clone(self));
        tokio::pin!(walking);
        tokio::select! {
            biased;
            () = self.app.shutdown.hard() => self.cut_short(walking).await,
            ended = &mut walking => ended,
        }
    }

    fn note(&self, end: &End) {
        if let Some(why) = &end.why_not {
            self.app.journal.tell_why(self.entry, why);
        }
        self.app.journal.end(self.entry, &end.word);
        let timing = self.timing();
        let lock = self.clock().lock;
        self.app.metrics.ended(self.kind, lock, end, timing);
        tracing::info!(
            attempt = %self.id,
            room = %self.room,
            outcome = end.word,
            wait_ms = timing.wait.as_millis() as u64,
            work_ms = timing.work.as_millis() as u64,
            trips = timing.trips,
            "the attempt ended"
        );
    }

    /// What is logged meanwhile names the attempt, which other lines of a walk do only where each step is told.
    pub fn in_its_name<T>(&self, telling: impl FnOnce() -> T) -> T {
        // An error's span, or a log of errors only would be without it.
        tracing::error_span!("attempt", id = %self.id, room = %self.room).in_scope(telling)
    }

    /// The replica that runs it.
    pub fn replica(&self) -> &str {
        &self.app.me.name
    }

    /// The replica stops. A walk that has not sent its commit is dropped, and what it holds with it.
    async fn cut_short<T, E: From<SectionError>>(
        &self,
        walking: std::pin::Pin<&mut impl Future<Output = Result<T, E>>>,
    ) -> Result<T, E> {
        if !self.commit_sent.load(Ordering::SeqCst) {
            return Err(SectionError::ShuttingDown.into());
        }
        let unknown = || SectionError::OutcomeUnknown("this replica is stopping".to_owned());
        tokio::time::timeout(LAST_WAIT, walking)
            .await
            .unwrap_or_else(|_| Err(unknown().into()))
    }

    /// Whether a walk that ended so begins anew; if not, what the attempt ends with.
    pub async fn begins_anew(&self, error: SectionError) -> Result<(), SectionError> {
        let SectionError::BeginAnew(why) = error else {
            return Err(error);
        };
        if self.count_beginning() >= MOST_BEGINNINGS {
            return Err(*why);
        }
        // Or the next walk would be refused by the lock of this one.
        let released = futures_util::future::join_all(self.take_releases());
        let _ = tokio::time::timeout(RELEASE_LIMIT, released).await;
        self.tell(StepKind::Anew, None, None, why.to_string());
        Ok(())
    }

    fn count_beginning(&self) -> u32 {
        let mut clock = self.clock();
        clock.beginnings += 1;
        clock.beginnings
    }

    /// Remembers a release that is under way.
    pub(super) fn releases(&self, released: JoinHandle<()>) {
        self.releasing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(released);
    }

    fn take_releases(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(
            &mut *self
                .releasing
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Tells a step to the journal and to the log.
    pub fn tell(
        &self,
        kind: StepKind,
        key: Option<String>,
        token: Option<i64>,
        detail: impl Into<String>,
    ) {
        self.tell_step(Step {
            key,
            token,
            ..Step::new(self.app.journal.now_ms(), kind, detail)
        });
    }

    /// Tells that a lock was granted, and until when its lease surely stands unless it is renewed.
    pub(super) fn tell_granted(
        &self,
        key: String,
        token: Option<i64>,
        until: Option<Instant>,
        detail: String,
    ) {
        let journal = &self.app.journal;
        self.tell_step(Step {
            key: Some(key),
            token,
            until_ms: until.map(|until| journal.at_ms(until)),
            ..Step::new(journal.now_ms(), StepKind::Granted, detail)
        });
    }

    fn tell_step(&self, step: Step) {
        let Step {
            kind,
            key,
            token,
            detail,
            ..
        } = &step;
        tracing::debug!(step = ?kind, key = key.as_deref(), token, who = self.who, "{detail}");
        self.app.journal.tell(self.entry, step);
    }

    /// Reaches a named point: waits there, once, if the attempt was asked to. `held` stops being renewed meanwhile,
    /// if it was asked to freeze.
    pub(super) async fn reach(&self, point: Point, held: &[Held]) {
        let Some(pause) = self.take_pause_at(point) else {
            return;
        };
        self.tell(StepKind::Paused, None, None, describe(&pause));
        if pause.freeze {
            held.iter().for_each(Held::freeze);
        }
        let pausing = async {
            tokio::select! {
                () = tokio::time::sleep(pause.limit()) => {}
                () = self.at_gate(&pause, point) => {}
                () = self.stop_after_commit(point) => {}
            }
        };
        self.tell_losses_during(held, pausing).await;
        if pause.freeze {
            held.iter().for_each(Held::thaw);
        }
        self.tell(StepKind::Resumed, None, None, "goes on");
    }

    /// Waits for something that takes time, and tells the loss of each lease that ends meanwhile, when it ends. It is
    /// only told: the walk looks at its leases once, and not here.
    pub(super) async fn tell_losses_during(
        &self,
        held: &[Held],
        waiting: impl Future<Output = ()>,
    ) {
        let standing = held.iter().filter(|held| held.check().is_ok());
        let losses = join_all(standing.map(async |held| {
            held.lost().await;
            for (key, token) in held.tokens().iter() {
                let token = token.map(|token| token.get());
                self.tell(
                    StepKind::Lost,
                    Some(key.to_string()),
                    token,
                    "the lease is over",
                );
            }
        }));
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            () = &mut waiting => {}
            _ = losses => waiting.await,
        }
    }

    /// Before the commit a stop drops the whole walk; after it, it ends the pause.
    async fn stop_after_commit(&self, point: Point) {
        if point != Point::AfterCommit {
            return std::future::pending().await;
        }
        self.app.shutdown.hard().await;
    }

    /// Whether its renewal may be made to stand still.
    pub(super) fn may_freeze(&self) -> bool {
        let pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        pause.as_ref().is_some_and(|pause| pause.freeze)
    }

    fn take_pause_at(&self, point: Point) -> Option<Failpoint> {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        pause.take_if(|pause| pause.at == point)
    }

    async fn at_gate(&self, pause: &Failpoint, point: Point) {
        let Some(gate) = &pause.gate else {
            return std::future::pending().await;
        };
        let who = AtGate {
            attempt: self.id,
            replica: self.app.me.name.clone(),
            at: point,
        };
        self.app.gates.wait(self.room.as_str(), gate, who).await;
    }

    /// What is left of `wait`: only time spent waiting for locks uses it up.
    pub(super) fn left_of(&self, wait: Duration) -> Duration {
        wait.saturating_sub(self.clock().waited)
    }

    /// How long a statement of this attempt may take.
    pub(super) fn database_limit(&self, wait: Duration) -> Duration {
        self.left_of(wait) + DATABASE_GRACE
    }

    pub(super) fn waited(&self, since: Instant) {
        self.clock().waited += since.elapsed();
    }

    pub(super) fn total_wait(&self) -> Duration {
        self.clock().waited
    }

    /// The room is known, and with it what it is locked with.
    pub(super) fn enters(&self, room: &Room) {
        self.clock().lock = room.switches.locking.then_some(room.switches.lock);
    }

    /// The last of its locks was granted.
    pub(super) fn holds_all(&self) {
        self.clock().granted = Some(Instant::now());
    }

    pub(super) fn began_work(&self) {
        self.clock().began_work.get_or_insert_with(Instant::now);
    }

    /// The commit's result is known, or the walk is over.
    pub(super) fn settled(&self) {
        let mut clock = self.clock();
        let granted = clock.granted.take();
        let began_work = clock.began_work.take();
        clock.hold += granted.map(|at| at.elapsed()).unwrap_or_default();
        clock.work += began_work.map(|at| at.elapsed()).unwrap_or_default();
    }

    fn timing(&self) -> Timing {
        self.settled();
        let clock = self.clock();
        Timing {
            wait: clock.waited,
            hold: clock.hold,
            work: clock.work,
            trips: self.trips.get(),
        }
    }

    fn clock(&self) -> std::sync::MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe(pause: &Failpoint) -> String {
    let sleeping = if pause.freeze {
        ", its renewal with it, as when the whole process sleeps"
    } else {
        ""
    };
    match &pause.gate {
        Some(gate) => format!("waits at gate {gate} for at most {} ms{sleeping}", pause.ms),
        None => format!("waits for {} ms{sleeping}", pause.ms),
    }
}
