//! One session at the ensemble, and the few requests that locks are made of.
//!
//! Each takes one round trip, and those that are begun together are answered in the order in which they were begun. No
//! request has a deadline of its own: one that is sent while the connection is down waits for it to come back or for
//! the session to end, whichever is first, so whoever cannot wait as long puts a limit around it.
//!
//! It promises that a session that ended never comes back. It does not promise that a request that failed was not
//! carried out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use zookeeper_client::{
    Acls, Client, CreateMode, Error, MultiReadResult, MultiWriteError, MultiWriteResult,
    OneshotWatcher, SessionInfo, SessionState, Stat,
};

/// How long a request waits for a connection that broke to come back, before it says that there is none.
const RECONNECTING: Duration = Duration::from_secs(1);

/// How many nodes one request asks for: far below the megabyte that ZooKeeper answers at most.
const NODES_PER_REQUEST: usize = 100;

/// How many bytes the paths may have that are watched at once.
///
/// Over a new connection the client names them all to the server, in one request for each 128 KiB. All these requests
/// have the same number, so it takes the answer to a second one for nonsense, with each new connection again, until the
/// session is over. (zookeeper-client 0.11.2, `resend_watches`.) Half of that: it forgets a little later than we do.
const MOST_WATCHED: usize = 64 * 1024;

/// A session. Dropped, it is closed, and everything in it is gone at once; unless it was begun detached, then it
/// lasts until its time is over.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    /// One permit for each byte of the paths that may yet be watched.
    room: Arc<Semaphore>,
    /// The client spoke nonsense or has failed: nothing more is to be expected of it.
    failed: AtomicBool,
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Trouble {
    /// The session is over, and what was made in it is gone or will be.
    #[error("the session has ended")]
    SessionEnded,
    /// There is no connection, so nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// There was no answer. It may have been carried out.
    #[error("{0}")]
    Unanswered(String),
    /// The server does not do such things, and would not if it were asked again.
    #[error("refused: {0}")]
    Refused(Error),
}

/// A node as a path, and the line it stands in.
#[derive(Debug, Clone)]
pub(super) struct NodePath {
    /// Its parent.
    pub(super) line: String,
    /// Its name in there.
    pub(super) name: String,
}

/// How making nodes ended.
#[derive(Debug)]
pub(super) enum Made {
    /// All were made by this request; what it told of each.
    Now(Vec<Fresh>),
    /// All are there: an earlier request of the same owner has made them.
    Before,
    /// None was made: a line has no parent yet.
    NoLine,
}

/// A node that was just made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fresh {
    /// The change that made it.
    pub(super) czxid: i64,
    /// Whether its line had no other node.
    pub(super) is_alone: bool,
}

/// A line, seen from one place in it.
#[derive(Debug)]
pub(super) struct Seen {
    /// What is known of the own node, if it is there.
    pub(super) own: Option<Stat>,
    /// The names of all others.
    pub(super) others: Vec<String>,
}

impl NodePath {
    pub(super) fn full(&self) -> String {
        self.beside(&self.name)
    }

    /// The path of another one in the same line.
    pub(super) fn beside(&self, name: &str) -> String {
        format!("{}/{name}", self.line)
    }
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            room: Arc::new(Semaphore::new(MOST_WATCHED)),
            failed: AtomicBool::new(false),
        }
    }

    /// What names it at the server.
    pub(super) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// What is needed to take it up again over another connection.
    pub(super) fn info(&self) -> SessionInfo {
        self.client.session().clone()
    }

    /// How long it lasts without being heard of, as the server decided.
    pub(super) fn time(&self) -> Duration {
        self.client.session_timeout()
    }

    /// Whether it is over, as far as this process knows.
    pub(super) fn has_ended(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.client.state().is_terminated()
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.has_ended() && self.client.state() == SessionState::SyncConnected
    }

    /// Waits for the connection to be there, but not for long.
    pub(super) async fn connected(&self) -> Result<(), Trouble> {
        let mut states = self.client.state_watcher();
        let reconnected = async {
            loop {
                if self.has_ended() {
                    return Err(Trouble::SessionEnded);
                }
                if self.is_connected() {
                    return Ok(());
                }
                states.changed().await;
            }
        };
        timeout(RECONNECTING, reconnected)
            .await
            .unwrap_or_else(|_| Err(Trouble::Unreachable("the connection is down".to_owned())))
    }

    /// Makes ephemeral nodes, all or none.
    ///
    /// The same request writes the empty data of their lines anew, since the answer to that tells how many nodes each
    /// line has now, and the number of the change, which all parts of a request share. (The answer to a creation in
    /// such a request tells nothing in some versions: ZOOKEEPER-4026.)
    pub(super) async fn make(&self, nodes: &[NodePath]) -> Result<Made, Trouble> {
        let mut request = self.client.new_multi_writer();
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        for node in nodes {
            request
                .add_create(&node.full(), b"", &ephemeral)
                .and_then(|()| request.add_set_data(&node.line, b"", None))
                .map_err(|error| self.trouble(error))?;
        }
        let results = match request.commit().await {
            Ok(results) => results,
            Err(MultiWriteError::OperationFailed { source, .. }) => {
                return match source {
                    Error::NodeExists => Ok(Made::Before),
                    Error::NoNode => Ok(Made::NoLine),
                    error => Err(self.trouble(error)),
                };
            }
            Err(error) => return Err(self.trouble(error.into())),
        };
        let lines = results.iter().filter_map(|result| match result {
            MultiWriteResult::SetData { stat } => Some(Fresh {
                czxid: stat.mzxid,
                is_alone: stat.num_children == 1,
            }),
            _ => None,
        });
        let fresh: Vec<Fresh> = lines.collect();
        if fresh.len() != nodes.len() {
            return Err(self.trouble(Error::UnexpectedError("half an answer".to_owned())));
        }
        Ok(Made::Now(fresh))
    }

    /// Makes the parent of a line, and `locks`, the parent of all lines. ZooKeeper removes it when it has been empty
    /// for a while.
    pub(super) async fn make_line(&self, line: &str, locks: &str) -> Result<(), Trouble> {
        let container = CreateMode::Container.with_acls(Acls::anyone_all());
        let mut made = self.client.create(line, b"", &container).await;
        if made == Err(Error::NoNode) {
            self.make_folder(locks).await?;
            made = self.client.create(line, b"", &container).await;
        }
        match made {
            Ok(_) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// Makes a folder that stays, with all that are above it.
    pub(super) async fn make_folder(&self, path: &str) -> Result<(), Trouble> {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let made = self.client.mkdir(path, &persistent).await;
        made.map_err(|error| self.trouble(error))
    }

    /// Looks at the lines of these nodes, all at one moment.
    pub(super) async fn look(&self, nodes: &[NodePath]) -> Result<Vec<Seen>, Trouble> {
        let mut request = self.client.new_multi_reader();
        for node in nodes {
            request
                .add_get_data(&node.full())
                .and_then(|()| request.add_get_children(&node.line))
                .map_err(|error| self.trouble(error))?;
        }
        let answer = request
            .commit()
            .await
            .map_err(|error| self.trouble(error))?;
        let lines = answer.chunks(2).zip(nodes);
        lines
            .map(|(answer, node)| self.seen(answer, node))
            .collect()
    }

    fn seen(&self, answer: &[MultiReadResult], node: &NodePath) -> Result<Seen, Trouble> {
        let [own, line] = answer else {
            return Err(self.trouble(Error::UnexpectedError("half an answer".to_owned())));
        };
        let own = self.stat(own)?;
        let others = match line {
            MultiReadResult::Children { children } => children
                .iter()
                .filter(|child| **child != node.name)
                .cloned()
                .collect(),
            MultiReadResult::Error { err: Error::NoNode } => Vec::new(),
            other => return Err(self.nonsense(other)),
        };
        Ok(Seen { own, others })
    }

    /// What is known of these nodes; `None` for one that is not there.
    pub(super) async fn stats(&self, paths: &[String]) -> Result<Vec<Option<Stat>>, Trouble> {
        let mut stats = Vec::with_capacity(paths.len());
        for some in paths.chunks(NODES_PER_REQUEST) {
            let mut request = self.client.new_multi_reader();
            for path in some {
                request
                    .add_get_data(path)
                    .map_err(|error| self.trouble(error))?;
            }
            let answer = request
                .commit()
                .await
                .map_err(|error| self.trouble(error))?;
            for result in &answer {
                stats.push(self.stat(result)?);
            }
        }
        Ok(stats)
    }

    fn stat(&self, result: &MultiReadResult) -> Result<Option<Stat>, Trouble> {
        match result {
            MultiReadResult::Data { stat, .. } => Ok(Some(*stat)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(None),
            other => Err(self.nonsense(other)),
        }
    }

    /// Whether all these nodes are there. It is a write that changes nothing: the leader orders it among all others,
    /// so no server that was left behind can answer it, and none answers it for a session that has ended.
    pub(super) async fn check(&self, nodes: &[NodePath]) -> Result<bool, Trouble> {
        let mut request = self.client.new_multi_writer();
        for node in nodes {
            // Never written again, so it stays at its first version.
            request
                .add_check_version(&node.full(), 0)
                .map_err(|error| self.trouble(error))?;
        }
        match request.commit().await {
            Ok(_) => Ok(true),
            Err(MultiWriteError::OperationFailed {
                source: Error::NoNode,
                ..
            }) => Ok(false),
            Err(error) => Err(self.trouble(error.into())),
        }
    }

    /// Deletes all these nodes. Says whether all were there; those that were are gone in any case.
    pub(super) async fn delete(&self, nodes: &[NodePath]) -> Result<bool, Trouble> {
        match nodes {
            [node] => self.delete_one(node).await,
            _ => self.delete_together(nodes).await,
        }
    }

    async fn delete_together(&self, nodes: &[NodePath]) -> Result<bool, Trouble> {
        let mut request = self.client.new_multi_writer();
        for node in nodes {
            request
                .add_delete(&node.full(), None)
                .map_err(|error| self.trouble(error))?;
        }
        match request.commit().await {
            Ok(_) => Ok(true),
            Err(MultiWriteError::OperationFailed {
                source: Error::NoNode,
                ..
            }) => {
                for node in nodes {
                    self.delete_one(node).await?;
                }
                Ok(false)
            }
            Err(error) => Err(self.trouble(error.into())),
        }
    }

    async fn delete_one(&self, node: &NodePath) -> Result<bool, Trouble> {
        match self.client.delete(&node.full(), None).await {
            Ok(()) => Ok(true),
            Err(Error::NoNode) => Ok(false),
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// The room to watch a node, for as long as this is kept; `None` when too many are watched.
    pub(super) fn room_to_watch(&self, path: &str) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(path.len()).ok()?;
        self.room.clone().try_acquire_many_owned(bytes).ok()
    }

    /// Watches a node until it is deleted or the session ends; `None` if it is not there. (Reading it, rather than
    /// asking whether it exists, leaves no watch behind for a node that is gone: Curator does the same.)
    pub(super) async fn watch(&self, path: &str) -> Result<Option<OneshotWatcher>, Trouble> {
        match self.client.get_and_watch_data(path).await {
            Ok((_, _, watcher)) => Ok(Some(watcher)),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// The data of a node, which is made with this data in this folder if it is not there.
    pub(super) async fn get_or_make(
        &self,
        path: &str,
        folder: &str,
        data: &[u8],
    ) -> Result<Vec<u8>, Trouble> {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.make_folder(folder).await?;
        match self.client.create(path, data, &persistent).await {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(error) => return Err(self.trouble(error)),
        }
        let got = self.client.get_data(path).await;
        got.map(|(data, _)| data)
            .map_err(|error| self.trouble(error))
    }

    fn nonsense(&self, result: &MultiReadResult) -> Trouble {
        self.trouble(match result {
            MultiReadResult::Error { err } => err.clone(),
            other => Error::UnexpectedError(format!("unexpected answer {other:?}")),
        })
    }

    fn trouble(&self, error: Error) -> Trouble {
        if matches!(
            error,
            Error::UnexpectedError(_) | Error::UnmarshalError { .. }
        ) {
            tracing::warn!(%error, "the ZooKeeper client has failed; its session is given up");
            self.failed.store(true, Ordering::Relaxed);
        }
        error.into()
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::SessionExpired
            | Error::SessionMoved
            | Error::AuthFailed
            | Error::ClientClosed
            | Error::UnexpectedError(_)
            | Error::UnmarshalError { .. } => Self::SessionEnded,
            Error::ConnectionLoss
            | Error::Timeout
            | Error::NoHosts
            | Error::Throttled
            | Error::NotReadOnly
            | Error::Custom(_) => Self::Unanswered(error.to_string()),
            other => Self::Refused(other),
        }
    }
}
