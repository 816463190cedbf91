//! What a claim has at the ensemble: one node for each of its keys, in one session.
//!
//! A line is ordered by when its nodes were created (`czxid`, a number of 64 bits that the leader gives each change),
//! not by the numbers that ZooKeeper can put into names: those have 32 bits and a sign, and after 2,147,483,647 nodes
//! they stop. Who is ahead of a node is found out once: nobody comes in ahead of it later.
//!
//! It promises that a claim is first only when a write has shown that its nodes are there. What
//! it has is known to [`Places`] before the first request is sent, so that it can be given up whatever happens.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use futures_util::future::join_all;
use tokio::{sync::watch, task::AbortHandle};
use zookeeper_client::SessionInfo;

use super::{
    paths::{self, Paths},
    session::{Fresh, Made, NodePath, Seen, Session, Trouble},
};
use crate::lock::{
    claim::{Claim, Grant, Owner, Token},
    key::Key,
    many::Keys,
    system::Released,
    unpoisoned,
};

/// How often nodes are made while the parents of their lines are not there: ZooKeeper could remove one between its
/// making and theirs, once a minute.
const MAKINGS: usize = 3;

/// All places of this process.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<Owner, Arc<Place>>>);

/// The place of one claim.
#[derive(Debug)]
pub(super) struct Place {
    keys: Keys,
    pub(super) nodes: Vec<NodePath>,
    pub(super) via: Via,
    standing: Mutex<Standing>,
    /// How giving it up has ended; there from the moment when it was begun.
    pub(super) leaving: OnceLock<watch::Receiver<Option<Released>>>,
}

/// Which session the nodes are in.
#[derive(Debug, Clone)]
pub(super) enum Via {
    /// The one that all claims share.
    Shared(Arc<Session>),
    /// One of its own, that is kept alive by nobody while it is held.
    Alone(SessionInfo),
}

#[derive(Debug, Default)]
struct Standing {
    /// For each node, in order; empty while there are none.
    spots: Vec<Spot>,
    /// Who is watched, and the task that does it.
    watched: Option<(String, AbortHandle)>,
    /// The connection of a session of its own, while it waits.
    waiting: Option<Arc<Session>>,
}

/// Where a node stands in its line.
#[derive(Debug, Clone)]
struct Spot {
    czxid: i64,
    /// The names of those ahead of it, in order.
    ahead: Vec<String>,
}

impl From<Fresh> for Spot {
    /// A node that is alone in its line.
    fn from(Fresh { czxid, .. }: Fresh) -> Self {
        Self {
            czxid,
            ahead: Vec::new(),
        }
    }
}

/// What a claim learns of its place.
#[derive(Debug)]
pub(super) enum View {
    /// It is first in all lines.
    First(Grant),
    /// Somebody is ahead of it.
    Behind {
        /// The first key that has somebody ahead.
        key: Key,
        /// The nearest one ahead, as a path.
        predecessor: String,
    },
}

impl Places {
    pub(super) fn of(&self, owner: Owner) -> Option<Arc<Place>> {
        unpoisoned::lock(&self.0).get(&owner).cloned()
    }

    pub(super) fn add(
        &self,
        claim: &Claim,
        session: &Session,
        via: Via,
        paths: &Paths,
    ) -> Arc<Place> {
        let name = paths::place(claim.owner, session.id());
        let nodes = claim.keys.iter().map(|key| NodePath {
            line: paths.line(key),
            name: name.clone(),
        });
        let place = Arc::new(Place {
            keys: claim.keys.clone(),
            nodes: nodes.collect(),
            via,
            standing: Mutex::default(),
            leaving: OnceLock::new(),
        });
        unpoisoned::lock(&self.0).insert(claim.owner, place.clone());
        place
    }

    pub(super) fn forget(&self, owner: Owner) {
        unpoisoned::lock(&self.0).remove(&owner);
    }

    pub(super) fn count(&self) -> usize {
        unpoisoned::lock(&self.0).len()
    }
}

impl Place {
    /// Stands in line, or looks how the lines have moved since.
    pub(super) async fn look(&self, session: &Session, locks: &str) -> Result<View, Trouble> {
        let Some(spots) = self.moved(session).await? else {
            let spots = self.enter(session, locks).await?;
            return Ok(self.note(spots));
        };
        let view = self.note(spots);
        // Others have left since its nodes were made, which may be long ago.
        if matches!(view, View::First(_)) && !session.check(&self.nodes).await? {
            self.is_nowhere();
            return Err(gone());
        }
        Ok(view)
    }

    /// How the lines have moved since it looked last; `None` if it does not stand in them.
    async fn moved(&self, session: &Session) -> Result<Option<Vec<Spot>>, Trouble> {
        let mut spots = unpoisoned::lock(&self.standing).spots.clone();
        if spots.is_empty() {
            return Ok(None);
        }
        let seen = session.look(&self.nodes).await?;
        for (spot, Seen { own, others }) in spots.iter_mut().zip(seen) {
            if own.is_none_or(|own| own.czxid != spot.czxid) {
                return Ok(None);
            }
            spot.ahead.retain(|name| others.contains(name));
        }
        Ok(Some(spots))
    }

    /// Makes the nodes, and looks who is ahead unless it is alone in all lines.
    async fn enter(&self, session: &Session, locks: &str) -> Result<Vec<Spot>, Trouble> {
        for _ in 0..MAKINGS {
            match session.make(&self.nodes).await? {
                Made::Now(fresh) if fresh.iter().all(|node| node.is_alone) => {
                    return Ok(fresh.into_iter().map(Spot::from).collect());
                }
                Made::Now(_) | Made::Before => {
                    let seen = session.look(&self.nodes).await?;
                    return self.spots(session, seen).await;
                }
                Made::NoLine => {
                    let lines = self.nodes.iter();
                    let made = lines.map(|node| session.make_line(&node.line, locks));
                    join_all(made)
                        .await
                        .into_iter()
                        .collect::<Result<(), _>>()?;
                }
            }
        }
        Err(Trouble::Unanswered(
            "the line was removed while it was entered".to_owned(),
        ))
    }

    async fn spots(&self, session: &Session, seen: Vec<Seen>) -> Result<Vec<Spot>, Trouble> {
        let mut spots = Vec::with_capacity(seen.len());
        for (node, Seen { own, others }) in self.nodes.iter().zip(seen) {
            let own = own
                .filter(|own| own.ephemeral_owner == session.id())
                .ok_or_else(gone)?;
            let paths: Vec<_> = others.iter().map(|name| node.beside(name)).collect();
            let stats = session.stats(&paths).await?;
            let mut ahead: Vec<_> = others
                .into_iter()
                .zip(stats)
                .filter_map(|(name, stat)| Some((stat?.czxid, name)))
                .filter(|(czxid, _)| *czxid < own.czxid)
                .collect();
            ahead.sort_unstable();
            spots.push(Spot {
                czxid: own.czxid,
                ahead: ahead.into_iter().map(|(_, name)| name).collect(),
            });
        }
        Ok(spots)
    }

    fn note(&self, spots: Vec<Spot>) -> View {
        let mut standing = unpoisoned::lock(&self.standing);
        standing.spots = spots;
        let view = self.view(&standing.spots);
        if matches!(view, View::First(_)) {
            standing.stop_watching();
        }
        view
    }

    fn view(&self, spots: &[Spot]) -> View {
        let lines = self.keys.iter().zip(&self.nodes).zip(spots);
        for ((key, node), spot) in lines {
            if let Some(nearest) = spot.ahead.last() {
                return View::Behind {
                    key: key.clone(),
                    predecessor: node.beside(nearest),
                };
            }
        }
        let tokens = self.keys.iter().zip(spots);
        View::First(
            tokens
                .map(|(key, spot)| (key.clone(), Token::new(spot.czxid)))
                .collect(),
        )
    }

    /// Whether it was first in all lines when it looked last.
    pub(super) fn is_first(&self) -> bool {
        let standing = unpoisoned::lock(&self.standing);
        !standing.spots.is_empty() && standing.spots.iter().all(|spot| spot.ahead.is_empty())
    }

    /// Its nodes are gone, or are to be given up.
    pub(super) fn is_nowhere(&self) {
        unpoisoned::lock(&self.standing).spots.clear();
    }

    /// Whether this one is watched already and has not moved.
    pub(super) fn is_watching(&self, path: &str) -> bool {
        let standing = unpoisoned::lock(&self.standing);
        let watched = standing.watched.as_ref();
        watched.is_some_and(|(watched, task)| watched == path && !task.is_finished())
    }

    pub(super) fn watches(&self, path: String, task: AbortHandle) {
        let mut standing = unpoisoned::lock(&self.standing);
        standing.stop_watching();
        standing.watched = Some((path, task));
    }

    /// The connection of a session of its own, if it has one now.
    pub(super) fn waiting(&self) -> Option<Arc<Session>> {
        unpoisoned::lock(&self.standing).waiting.clone()
    }

    /// Keeps the connection for the wait.
    pub(super) fn waits_with(&self, session: Arc<Session>) {
        unpoisoned::lock(&self.standing).waiting = Some(session);
    }

    /// Nothing keeps a session of its own alive any more.
    pub(super) fn lets_time_run(&self) {
        unpoisoned::lock(&self.standing).waiting = None;
    }
}

impl Standing {
    fn stop_watching(&mut self) {
        if let Some((_, task)) = self.watched.take() {
            task.abort();
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.stop_watching();
    }
}

fn gone() -> Trouble {
    Trouble::Unanswered("its own node is gone".to_owned())
}
