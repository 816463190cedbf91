//! `zookeeper`: a ZooKeeper ensemble (3.6 or newer, for reading several nodes at one moment).
//!
//! A claim is an ephemeral node in the line of its key; the oldest node of a line holds the key, and each other one
//! watches the one before it. The token is the number of the change that made the node (`czxid`). What one process
//! holds stands in one session, which the client keeps alive: the lease is the session's time, `ttl` does not apply,
//! and a session that ends takes all of it. A claim that must be able to end by itself stands in a session of its own.
//!
//! It promises the order of creation to those who want one key. Several keys are taken together or not at all: who is
//! refused one of them leaves all lines, waits, and comes back at their ends. It promises that tokens rise as long as
//! the ensemble keeps its data.
//!
//! It does not promise that a lock is still held when its holder believes it: the server ends a session that it did
//! not hear of, and the client learns that when it is heard again.
//!
//! Sources: Apache ZooKeeper, "Recipes and Solutions" (locks); Apache Curator (`LockInternals`, CURATOR-498 and -604: a
//! node of an earlier session is nobody's); kazoo issues 606 and 730 (why the order is not taken from names).

mod paths;
mod place;
mod session;
mod sessions;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use self::{
    paths::Paths,
    place::{Place, Places, Via, View},
    session::{Session, Trouble},
    sessions::Sessions,
};
use crate::lock::{
    backoff::Backoff,
    claim::{Claim, Owner},
    error::LockError,
    guarantees::LockName,
    key::Key,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId},
    wakeups::Wakeups,
};

/// How long the question for the ensemble's id may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// The first and the longest pause between two tries to give up a place.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Grants locks at one ensemble.
pub struct ZooKeeper(Arc<Inner>);

struct Inner {
    paths: Paths,
    sessions: Sessions,
    places: Places,
    wakeups: Arc<Wakeups>,
}

impl ZooKeeper {
    /// Reads an address such as `host:2181,host:2181/folder`; the folder is made when it is not there. Connects to
    /// nothing yet. `session` is how long a session should last that is not heard of; the ensemble allows 2 to 20 of
    /// its ticks.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when the address cannot be read.
    pub fn open(address: &str, session: Duration) -> Result<Self, LockError> {
        let (servers, folder) = match address.find('/') {
            Some(slash) => address.split_at(slash),
            None => (address, ""),
        };
        Ok(Self(Arc::new(Inner {
            paths: Paths::below(folder.trim_end_matches('/')),
            sessions: Sessions::at(servers, session)?,
            places: Places::default(),
            wakeups: Arc::default(),
        })))
    }

    /// How many claims of this process have something at the ensemble, or may have.
    pub fn places(&self) -> usize {
        self.0.places.count()
    }
}

#[async_trait]
impl LockSystem for ZooKeeper {
    fn name(&self) -> LockName {
        LockName::Zookeeper
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        self.0.within(claim.patience, self.0.ask(claim)).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        self.0.within(claim.patience, self.0.renew(claim)).await
    }

    /// There is no blind release: nobody else's node can be taken for the own one.
    async fn release(&self, claim: &Claim, _: ReleaseMode) -> Result<Released, LockError> {
        let Some(place) = self.0.places.of(claim.owner) else {
            return Ok(Released::NotTheOwner);
        };
        let mut left = self.0.leave(claim.owner, &place);
        let left = async {
            let ended = left.wait_for(Option::is_some).await;
            // The task that leaves ended without a word only if the runtime is ending.
            ended.ok().and_then(|ended| *ended)
        };
        match timeout(claim.patience, left).await {
            Ok(Some(released)) => Ok(released),
            Ok(None) | Err(_) => Err(LockError::no_answer(claim)),
        }
    }

    fn wakeups(&self) -> Option<&Wakeups> {
        Some(&self.0.wakeups)
    }

    fn queues(&self) -> bool {
        true
    }

    fn lease_time(&self, _: Duration) -> Option<Duration> {
        Some(self.0.sessions.time())
    }

    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let id = self.0.within(SERVER_PATIENCE, self.0.server(draw)).await?;
        Ok(Some(ServerId {
            id,
            address: self.0.sessions.servers().to_owned(),
            kept_in: format!("the node {}", self.0.paths.server()),
        }))
    }

    fn connections(&self) -> u64 {
        self.0.sessions.made()
    }
}

impl Inner {
    /// Asks; and asks once more when the connection or the session broke meanwhile, since asking twice does no harm.
    async fn ask(&self, claim: &Claim) -> Result<Answer, Trouble> {
        match self.ask_once(claim).await {
            Err(Trouble::SessionEnded | Trouble::Unanswered(_)) => self.ask_once(claim).await,
            answer => answer,
        }
    }

    async fn ask_once(&self, claim: &Claim) -> Result<Answer, Trouble> {
        let (place, session) = self.place(claim).await?;
        loop {
            let (key, predecessor) = match place.look(&session, &self.paths.locks()).await? {
                View::Behind { key, predecessor } => (key, predecessor),
                View::First(grant) => {
                    place.lets_time_run();
                    return Ok(Answer::Granted(grant));
                }
            };
            let refused = Answer::Refused {
                key: key.clone(),
                retry_in: None,
            };
            if claim.keys.count() > 1 {
                self.step_back(&place, &session, &key, &predecessor).await?;
                return Ok(refused);
            }
            if self.watch(&place, &session, &key, &predecessor).await? {
                return Ok(refused);
            }
            // It has left since, so there is one fewer ahead.
        }
    }

    /// The place that the claim has already, or a new one, with the session to ask in.
    async fn place(&self, claim: &Claim) -> Result<(Arc<Place>, Arc<Session>), Trouble> {
        if let Some(place) = self.places.of(claim.owner) {
            match self.session_of(&place).await {
                // What stood in it is gone, or will be; it is never taken over into another one.
                Err(Trouble::SessionEnded) => self.places.forget(claim.owner),
                session => return Ok((place, session?)),
            }
        }
        let (session, via) = if claim.alone {
            let session = Arc::new(self.sessions.begin_alone().await?);
            let via = Via::Alone(session.info());
            (session, via)
        } else {
            let session = self.sessions.shared().await?;
            (session.clone(), Via::Shared(session))
        };
        let place = self.places.add(claim, &session, via, &self.paths);
        if claim.alone {
            place.waits_with(session.clone());
        }
        Ok((place, session))
    }

    /// The session of a place, connected.
    async fn session_of(&self, place: &Place) -> Result<Arc<Session>, Trouble> {
        let session = match &place.via {
            Via::Shared(session) => session.clone(),
            Via::Alone(info) => match place.waiting() {
                Some(session) => session,
                None => return Ok(Arc::new(self.sessions.take_up(info).await?)),
            },
        };
        session.connected().await?;
        Ok(session)
    }

    /// Sees to it that the waiters of the key are woken when this node goes; `false` if it has gone already. Where too
    /// many are watched this one is not: those who wait ask again by themselves.
    async fn watch(
        &self,
        place: &Place,
        session: &Session,
        key: &Key,
        predecessor: &str,
    ) -> Result<bool, Trouble> {
        if place.is_watching(predecessor) {
            return Ok(true);
        }
        let Some(room) = session.room_to_watch(predecessor) else {
            return Ok(true);
        };
        let Some(watcher) = session.watch(predecessor).await? else {
            return Ok(false);
        };
        let (wakeups, key) = (self.wakeups.clone(), key.clone());
        let watching = tokio::spawn(async move {
            watcher.changed().await;
            drop(room);
            wakeups.wake(&key);
        });
        place.watches(predecessor.to_owned(), watching.abort_handle());
        Ok(true)
    }

    /// Leaves all lines, since several keys are taken together or not at all, and is woken when it may be worth
    /// coming back.
    async fn step_back(
        &self,
        place: &Place,
        session: &Session,
        key: &Key,
        predecessor: &str,
    ) -> Result<(), Trouble> {
        place.is_nowhere();
        let watched = self.watch(place, session, key, predecessor);
        let (there, left) = join(watched, session.delete(&place.nodes)).await;
        left?;
        if !there? {
            self.wakeups.wake(key);
        }
        Ok(())
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, Trouble> {
        let place = self.places.of(claim.owner);
        let Some(place) = place.filter(|place| place.is_first()) else {
            return Ok(Renewal::Lost);
        };
        let checked = match self.session_of(&place).await {
            Ok(session) => session.check(&place.nodes).await,
            Err(trouble) => Err(trouble),
        };
        match checked {
            Ok(true) => Ok(Renewal::Kept),
            Ok(false) | Err(Trouble::SessionEnded) => Ok(Renewal::Lost),
            Err(trouble) => Err(trouble),
        }
    }

    /// Gives a place up in a task of its own, which goes on until its nodes or its session are gone. Where it is
    /// given up already, that goes on.
    fn leave(
        self: &Arc<Self>,
        owner: Owner,
        place: &Arc<Place>,
    ) -> watch::Receiver<Option<Released>> {
        let leaving = place.leaving.get_or_init(|| {
            let (ended, leaving) = watch::channel(None);
            let (inner, place) = (self.clone(), place.clone());
            tokio::spawn(async move {
                let released = inner.until_left(&place).await;
                inner.places.forget(owner);
                ended.send_replace(Some(released));
            });
            leaving
        });
        leaving.clone()
    }

    async fn until_left(&self, place: &Place) -> Released {
        let session_ends = Instant::now() + self.sessions.time();
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let mut first = true;
        loop {
            match self.left(place).await {
                // In a session that lives, a node goes only by its own hand: an earlier try that was not answered.
                Ok(all) if all || !first => return Released::Released,
                Ok(_) | Err(Trouble::SessionEnded) => return Released::NotTheOwner,
                Err(trouble) => {
                    tracing::debug!(%trouble, "a place in line is not given up yet");
                }
            }
            first = false;
            // Nobody keeps a session of its own alive.
            if matches!(place.via, Via::Alone(_)) && session_ends <= Instant::now() {
                return Released::NotTheOwner;
            }
            sleep(backoff.next_pause()).await;
        }
    }

    /// Deletes the nodes, in a request that lasts until it is answered or the session has ended.
    async fn left(&self, place: &Place) -> Result<bool, Trouble> {
        match &place.via {
            Via::Shared(session) => session.delete(&place.nodes).await,
            Via::Alone(info) => {
                place.lets_time_run();
                let session = self.sessions.take_up_to_end(info).await?;
                session.delete(&place.nodes).await
            }
        }
    }

    async fn server(&self, draw: &str) -> Result<String, Trouble> {
        let session = self.sessions.shared().await?;
        let (node, folder) = (self.paths.server(), self.paths.root());
        let id = session.get_or_make(&node, folder, draw.as_bytes()).await?;
        Ok(String::from_utf8_lossy(&id).into_owned())
    }

    async fn within<T>(
        &self,
        patience: Duration,
        request: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, LockError> {
        let answer = timeout(patience, request).await.unwrap_or_else(|_| {
            let ms = patience.as_millis();
            Err(Trouble::Unanswered(format!("no answer within {ms} ms")))
        });
        answer.map_err(|trouble| {
            LockError::unavailable(format!(
                "zookeeper at {}: {trouble}",
                self.sessions.servers()
            ))
        })
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZooKeeper")
            .field(&self.0.sessions.servers())
            .finish()
    }
}
