//! `redlock`: a majority of independent Redis nodes (6 or newer), an odd number of them, which know nothing of each
//! other.
//!
//! All nodes are asked at once, and the outcome stands as soon as a majority makes it certain, so that one node that
//! hangs changes nothing and two of five may be gone. Each grant has a fencing token, which no majority of nodes can
//! give twice and which grows from grant to grant ([`quorum`]). A node that restarts without its memory does not vote
//! until nothing depends on what it forgot (see `members`).
//!
//! It promises that a lock is held by one owner as long as the clocks of the nodes run at about the same speed and at
//! most a minority of them fails or forgets at a time, and that tokens rise whatever the clocks do. It does not promise
//! an order between waiters, who come back after a pause, nor that a holder which was paused learns of its loss. When a
//! majority forgets, a held lock can be granted again; then only the time that seeds the tokens, and the epoch that
//! grows with the new name, keep the old holder out.
//!
//! (Redis documentation, "Distributed locks"; its critique, Kleppmann, "How to do distributed locking", 2016, which
//! asks for the token; the two phases of the token follow Attiya, Bar-Noy and Dolev.)

pub mod quorum;

mod asking;
mod following;
mod members;
mod naming;
mod node;
mod polling;
mod withdrawing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use self::{
    asking::Asked,
    following::Following,
    members::Members,
    node::{Absence, Blocked, Mark, Node, Request},
    polling::poll,
    quorum::majority,
};
use crate::lock::{
    claim::{Claim, Grant, Token},
    error::LockError,
    guarantees::LockName,
    lease,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId},
};

/// The fewest nodes of which one may fail.
const FEWEST_NODES: usize = 3;

/// How long the question for the servers' name may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// How many claims of this process may be before the nodes at a time. More would only wait for each other there, and
/// take that for silence.
const MOST_CLAIMS: usize = 64;

/// All nodes, always in the same order.
type Nodes = Arc<[Arc<Node>]>;

/// The answers of nodes, as they come.
type Answers<T> = FuturesUnordered<BoxFuture<'static, (usize, Result<T, Absence>)>>;

/// Why nodes do not count, by their numbers.
type Absences = BTreeMap<usize, Absence>;

/// Grants locks at a majority of Redis nodes.
#[derive(Debug)]
pub struct Redlock {
    nodes: Nodes,
    members: Arc<Members>,
    /// Numbers the asks, so that the end of one does not free what a later one of the same owner got.
    asks: AtomicU64,
    following: Arc<Following>,
    turns: Semaphore,
}

/// Why a request to all nodes failed.
enum Failure {
    /// A majority is new, or has begun anew with others.
    Forgotten(LockError),
    Unavailable(LockError),
}

impl Redlock {
    /// Reads the URLs of the nodes, such as `redis://:password@host:6379/0`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when a URL cannot be read, when their number is even or below 3, or when one is there
    /// twice.
    pub fn open(urls: &[impl AsRef<str>]) -> Result<Self, LockError> {
        if urls.len() < FEWEST_NODES || urls.len().is_multiple_of(2) {
            let given = urls.len();
            return Err(LockError::bad_setting(format!(
                "a Redlock has an odd number of nodes, {FEWEST_NODES} or more, not {given}"
            )));
        }
        let opened = urls
            .iter()
            .map(|url| Node::open(url.as_ref()).map(Arc::new));
        let nodes: Nodes = opened.collect::<Result<Vec<_>, _>>()?.into();
        let addresses: BTreeSet<_> = nodes.iter().map(|node| node.address()).collect();
        if addresses.len() < nodes.len() {
            return Err(LockError::bad_setting(
                "a node of a Redlock is named twice, and would have two votes",
            ));
        }
        Ok(Self {
            members: Arc::new(Members::new(nodes.clone())),
            nodes,
            asks: AtomicU64::new(1),
            following: Arc::default(),
            turns: Semaphore::new(MOST_CLAIMS),
        })
    }
}

#[async_trait]
impl LockSystem for Redlock {
    fn name(&self) -> LockName {
        LockName::Redlock
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        let began = Instant::now();
        let until = lease::deadline(began, claim.ttl).min(began + claim.patience);
        let Ok(_turn) = timeout_at(until, self.turns.acquire()).await else {
            return Err(LockError::TooManyWaiters { limit: MOST_CLAIMS });
        };
        self.with_mark(until, |mark| self.ask_again_once(mark, claim, until))
            .await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let renew =
            |node: Arc<Node>, request: Arc<Request>| async move { node.renew(&request).await };
        let polled = poll(&self.nodes, self.request(claim).await?, renew).await;
        let verdict = polled.verdict();
        polled.finish();
        Ok(if verdict? {
            Renewal::Kept
        } else {
            Renewal::Lost
        })
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        self.following.give_back(claim.owner);
        let release = move |node: Arc<Node>, request: Arc<Request>| async move {
            node.release(&request, mode).await
        };
        let polled = poll(&self.nodes, self.request(claim).await?, release).await;
        let verdict = polled.verdict();
        // Without a verdict it is released again, and must find what is still there; but not a blind one.
        if verdict.is_ok() || mode == ReleaseMode::Blind {
            polled.withdraw_from_the_silent();
        } else {
            polled.finish();
        }
        Ok(if verdict? {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }

    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let until = Instant::now() + SERVER_PATIENCE;
        let name = self.with_mark(until, |mark| naming::name(&self.nodes, mark, draw));
        let addresses = self.nodes.iter().map(|node| node.address());
        Ok(Some(ServerId {
            id: name.await?,
            address: addresses.collect::<Vec<_>>().join(", "),
            kept_in: format!("the field name of {} on each node", node::RECORD),
        }))
    }

    fn connections(&self) -> u64 {
        self.nodes.iter().map(|node| node.connections()).sum()
    }
}

impl Redlock {
    /// Runs a request to the nodes of this Redlock. If they turn out to be those of another, because they are new or
    /// others began anew with them, it is run once more.
    async fn with_mark<T, F>(
        &self,
        until: Instant,
        request: impl Fn(Mark) -> F,
    ) -> Result<T, LockError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mark = self.mark(until).await?;
        let answer = match request(mark.clone()).await {
            Err(Failure::Forgotten(_)) => {
                self.members.forget(&mark);
                request(self.mark(until).await?).await
            }
            answer => answer,
        };
        answer.map_err(LockError::from)
    }

    async fn mark(&self, until: Instant) -> Result<Mark, LockError> {
        if self.nodes.iter().any(|node| node.keeps_out()) {
            self.members.look_after_empty_nodes();
        }
        self.members.mark(until).await
    }

    /// A majority that was silent for a moment may have been busy: it is asked a second time before anybody is told
    /// that there is none.
    async fn ask_again_once(
        &self,
        mark: Mark,
        claim: &Claim,
        until: Instant,
    ) -> Result<Answer, Failure> {
        match self.ask_once(mark.clone(), claim, until).await {
            Err(Failure::Unavailable(_)) if Instant::now() < until => {
                self.ask_once(mark, claim, until).await
            }
            answer => answer,
        }
    }

    async fn ask_once(&self, mark: Mark, claim: &Claim, until: Instant) -> Result<Answer, Failure> {
        let request = Request::new(mark, claim, self.next_number());
        match asking::ask(&self.nodes, request, until, &self.following).await {
            Asked::Granted(token) => Ok(Answer::Granted(grant(claim, token))),
            Asked::Refused(Blocked { key, rest }) => Ok(Answer::Refused {
                key,
                retry_in: rest,
            }),
            Asked::Unavailable(absences) => Err(no_majority(&self.nodes, &absences)),
            Asked::TooLate => Err(Failure::Unavailable(LockError::unavailable(
                "the nodes took so long that the lease was over",
            ))),
        }
    }

    fn next_number(&self) -> u64 {
        self.asks.fetch_add(1, Ordering::Relaxed)
    }

    async fn request(&self, claim: &Claim) -> Result<Request, LockError> {
        let mark = self.mark(Instant::now() + claim.patience).await?;
        Ok(Request::new(mark, claim, self.next_number()))
    }
}

/// One token for all keys of a claim.
fn grant(claim: &Claim, token: Token) -> Grant {
    let keys = claim.keys.iter();
    keys.map(|key| (key.clone(), Some(token))).collect()
}

/// Sends a request to each node. They are under way once somebody waits for an answer.
fn ask_all<T, F>(nodes: &Nodes, request: impl Fn(Arc<Node>) -> F) -> Answers<T>
where
    F: Future<Output = Result<T, Absence>> + Send + 'static,
{
    ask_each(nodes, |_, node| request(node))
}

/// As [`ask_all`], each with a question of its own.
fn ask_each<T, F>(nodes: &Nodes, request: impl Fn(usize, Arc<Node>) -> F) -> Answers<T>
where
    F: Future<Output = Result<T, Absence>> + Send + 'static,
{
    let requests = nodes.iter().enumerate().map(|(number, node)| {
        let answer = request(number, node.clone());
        let numbered = async move { (number, answer.await) };
        Box::pin(numbered) as BoxFuture<'static, _>
    });
    requests.collect()
}

/// Lets requests end that nobody waits for any more. Each ends within its patience.
fn finish<T: Send + 'static>(mut answers: Answers<T>) {
    if !answers.is_empty() {
        tokio::spawn(async move { while answers.next().await.is_some() {} });
    }
}

/// A majority of the nodes does not count.
fn no_majority(nodes: &Nodes, absences: &Absences) -> Failure {
    let forgotten = absences
        .values()
        .filter(|absence| matches!(absence, Absence::Empty | Absence::Foreign))
        .count();
    let error = unavailable(nodes, "no majority of the nodes votes", absences);
    if forgotten >= majority(nodes.len()) {
        Failure::Forgotten(error)
    } else {
        Failure::Unavailable(error)
    }
}

fn unavailable(nodes: &Nodes, what: &str, absences: &Absences) -> LockError {
    let reasons = absences.iter().map(|(&node, absence)| match absence {
        Absence::Silent(reason) => reason.clone(),
        absence => format!("redis at {}: {absence}", nodes[node].address()),
    });
    let reasons: Vec<_> = [what.to_owned()].into_iter().chain(reasons).collect();
    LockError::unavailable(reasons.join("; "))
}

impl From<Failure> for LockError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Forgotten(error) | Failure::Unavailable(error) => error,
        }
    }
}
