//! The one channel to one member of the cluster, which all requests of this process share.
//!
//! The members are used one at a time. Whoever finds that the member in use is gone or silent leaves it, and the next
//! request makes a channel to the next one. (A channel to all of them would go on asking the dead one now and then,
//! and each time the request would fail.)
//!
//! It promises an answer or a failure within the time of a request. It does not promise that a request that failed
//! was not carried out.

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use etcd_client::{
    Client, ConnectOptions, Error, LeaseGrantResponse, ResponseHeader, Txn, TxnResponse,
    WatchOptions, WatchStream,
};
use tokio::time::{Instant, timeout_at};

use crate::lock::{error::LockError, unpoisoned};

/// How long making a connection may take. A server nearby answers in milliseconds.
const CONNECTING: Duration = Duration::from_secs(1);

/// How long one request must have waited in vain for its channel to be taken for dead.
const TELLING_SILENCE: Duration = Duration::from_millis(500);

/// gRPC's code for what is not there, and the words that mean a lease. (etcd, `api/v3rpc/rpctypes/error.go`.)
const NO_LEASE: &str = "requested lease not found";

/// How etcd-client says that a keep-alive found no lease.
const NO_LEASE_TO_KEEP: &str = "lease not found";

/// Whether a request that failed is sent again at once, to the next member. Only for requests that do no harm when
/// they are carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    AtEachMember,
    Never,
}

/// What a transaction was answered.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Result<TxnResponse, Failure>,
    /// It was sent before without an answer, and may yet be carried out once more.
    pub(super) in_doubt: bool,
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server does not know the lease. Nothing was carried out.
    NoLease,
    /// There was no answer in time.
    Silence,
    /// The member cannot be reached, or cannot work; the request may have been carried out.
    Member(String),
    /// The cluster refused it, or answered something else than it was asked. Another member would do the same.
    Answer(String),
}

pub(super) struct Link {
    members: Vec<String>,
    /// Locked while a new channel is made, so that one task makes it for all.
    current: tokio::sync::Mutex<Current>,
    made: AtomicU64,
    /// Requests in a row that were not answered in time.
    silences: AtomicU32,
    last: Mutex<Option<Seen>>,
}

#[derive(Default)]
struct Current {
    /// Which member is next.
    next: usize,
    channel: Option<Channel>,
}

/// A channel and how many were made before it.
#[derive(Clone)]
struct Channel {
    number: u64,
    client: Client,
}

/// What an answer says about the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    cluster: u64,
    revision: i64,
}

impl Seen {
    /// Whether an answer with this, to a request sent after that was seen, comes from another cluster, or from one
    /// that lost what it knew. Reads and writes are linearizable, so the revision never falls.
    fn is_another_than(self, before: Self) -> bool {
        self.cluster != before.cluster || self.revision < before.revision
    }
}

impl Link {
    /// Reads addresses such as `http://host:2379`. Connects to nothing yet.
    pub(super) fn open(members: &[String]) -> Result<Self, LockError> {
        if members.is_empty() {
            return Err(LockError::bad_setting(
                "no member of the etcd cluster is given",
            ));
        }
        for member in members {
            // It is not repeated, since it may hold a password.
            if !member.starts_with("http://") || member.contains('@') {
                return Err(LockError::bad_setting(
                    "an etcd member is given as http://host:port, without a user; TLS is not supported",
                ));
            }
        }
        Ok(Self {
            members: members.to_vec(),
            current: tokio::sync::Mutex::default(),
            made: AtomicU64::new(0),
            silences: AtomicU32::new(0),
            last: Mutex::default(),
        })
    }

    /// All members, for people.
    pub(super) fn address(&self) -> String {
        self.members.join(",")
    }

    /// How many channels were made, and how often an answer came from another cluster than the one before.
    pub(super) fn connections(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    pub(super) async fn txn(&self, txn: &Txn, until: Instant, repeat: Repeat) -> Reply {
        let before = *unpoisoned::lock(&self.last);
        let sent = AtomicU32::new(0);
        let answer = self
            .call(until, repeat, |mut client| {
                sent.fetch_add(1, Ordering::Relaxed);
                let txn = txn.clone();
                async move { client.txn(txn).await }
            })
            .await;
        if let Ok(answer) = &answer {
            self.compare(before, answer.header());
        }
        Reply {
            answer,
            in_doubt: sent.into_inner() > 1,
        }
    }

    /// Makes a lease.
    pub(super) async fn grant(
        &self,
        seconds: i64,
        until: Instant,
    ) -> Result<LeaseGrantResponse, Failure> {
        self.call(until, Repeat::AtEachMember, |mut client| async move {
            client.lease_grant(seconds, None).await
        })
        .await
    }

    /// Keeps a lease alive, once. Each time is a stream of its own, so that one that was closed means nothing.
    pub(super) async fn keep_alive(&self, lease: i64, until: Instant) -> Result<(), Failure> {
        self.call(until, Repeat::AtEachMember, |mut client| async move {
            client.lease_keep_alive(lease).await.map(drop)
        })
        .await
    }

    /// Ends a lease, with all keys that hang on it.
    pub(super) async fn revoke(&self, lease: i64, until: Instant) -> Result<(), Failure> {
        self.call(until, Repeat::AtEachMember, |mut client| async move {
            client.lease_revoke(lease).await.map(drop)
        })
        .await
    }

    /// Starts to watch a key.
    pub(super) async fn watch(
        &self,
        key: &[u8],
        options: WatchOptions,
        until: Instant,
    ) -> Result<WatchStream, Failure> {
        self.call(until, Repeat::Never, |mut client| {
            let (key, options) = (key.to_vec(), options.clone());
            async move { client.watch(key, Some(options)).await }
        })
        .await
    }

    /// Sends a request, to the next member too if it may be repeated. A member that is silent gets its share of the
    /// time only.
    async fn call<T, R, F>(&self, until: Instant, repeat: Repeat, request: R) -> Result<T, Failure>
    where
        R: Fn(Client) -> F,
        F: Future<Output = Result<T, Error>>,
    {
        let members = self.members.len();
        let tries = match repeat {
            // Once more than there are members: the first channel may be dead although its member is not.
            Repeat::AtEachMember => members + 1,
            Repeat::Never => 1,
        };
        let mut failure = Failure::Silence;
        for left in (1..=tries).rev() {
            let now = Instant::now();
            let share = u32::try_from(left.min(members)).unwrap_or(u32::MAX);
            let limit = until.saturating_duration_since(now) / share;
            if limit.is_zero() {
                break;
            }
            failure = match self.try_once(now, limit, &request).await {
                Err(failure @ (Failure::Silence | Failure::Member(_))) => failure,
                answered => return answered,
            };
        }
        Err(failure)
    }

    async fn try_once<T, R, F>(
        &self,
        began: Instant,
        limit: Duration,
        request: &R,
    ) -> Result<T, Failure>
    where
        R: Fn(Client) -> F,
        F: Future<Output = Result<T, Error>>,
    {
        let channel = self.channel().await?;
        let answer = timeout_at(began + limit, request(channel.client))
            .await
            .map_err(|_| Failure::Silence)
            .and_then(|answer| answer.map_err(Failure::from));
        let dead = match &answer {
            Err(Failure::Silence) => self.heard_nothing(limit),
            Err(Failure::Member(_)) => true,
            _ => self.heard(),
        };
        if dead {
            self.leave(channel.number).await;
        }
        answer
    }

    /// The channel in use, or a new one. It connects when it is used first.
    async fn channel(&self) -> Result<Channel, Failure> {
        let mut current = self.current.lock().await;
        if let Some(channel) = &current.channel {
            return Ok(channel.clone());
        }
        let member = &self.members[current.next % self.members.len()];
        let options = ConnectOptions::new()
            .with_connect_timeout(CONNECTING)
            .with_require_leader(true);
        let client = Client::connect([member], Some(options)).await?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(current.channel.insert(Channel { number, client }).clone())
    }

    /// Leaves a member for the next one, unless somebody has already done so.
    async fn leave(&self, number: u64) {
        let mut current = self.current.lock().await;
        let in_use = current.channel.as_ref();
        if in_use.is_some_and(|channel| channel.number == number) {
            current.channel = None;
            current.next = (current.next + 1) % self.members.len();
        }
    }

    /// An answer came: whatever was late before was only late.
    fn heard(&self) -> bool {
        self.silences.store(0, Ordering::Relaxed);
        false
    }

    /// No answer came in time; says whether the channel is to be taken for dead. One request that could wait for a
    /// moment only proves nothing about a channel that everybody shares; a second one in a row does.
    fn heard_nothing(&self, limit: Duration) -> bool {
        let before = self.silences.fetch_add(1, Ordering::Relaxed);
        before > 0 || limit >= TELLING_SILENCE
    }

    /// Below a channel connections come and go unseen, and a name may lead elsewhere: so each answer is looked at.
    fn compare(&self, before: Option<Seen>, header: Option<&ResponseHeader>) {
        let Some(header) = header else { return };
        let now = Seen {
            cluster: header.cluster_id(),
            revision: header.revision(),
        };
        let mut last = unpoisoned::lock(&self.last);
        if before.is_some_and(|before| now.is_another_than(before)) {
            self.made.fetch_add(1, Ordering::Relaxed);
            *last = Some(now);
        } else if last.is_none_or(|last| last.revision < now.revision) {
            *last = Some(now);
        }
    }

    /// What a failure is to those above.
    pub(super) fn unavailable(&self, failure: &Failure, patience: Duration) -> LockError {
        let address = self.address();
        LockError::unavailable(match failure {
            Failure::Silence => format!(
                "etcd at {address}: no answer within {} ms",
                patience.as_millis()
            ),
            Failure::NoLease => format!("etcd at {address}: the lease ended again and again"),
            Failure::Member(reason) | Failure::Answer(reason) => {
                format!("etcd at {address}: {reason}")
            }
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // The numbers of gRPC's codes: the crate that has names for them is not ours to depend on.
        const NOT_FOUND: i32 = 5;
        const OF_THE_MEMBER: [i32; 5] = [
            1,  // cancelled
            2,  // unknown
            4,  // deadline exceeded
            13, // internal
            14, // unavailable
        ];
        match error {
            Error::GRpcStatus(status) => match status.code() as i32 {
                NOT_FOUND if status.message().contains(NO_LEASE) => Self::NoLease,
                code if OF_THE_MEMBER.contains(&code) => Self::Member(status.message().to_owned()),
                _ => Self::Answer(status.message().to_owned()),
            },
            Error::LeaseKeepAliveError(text) if text == NO_LEASE_TO_KEEP => Self::NoLease,
            Error::InvalidArgs(_) | Error::InvalidUri(_) => Self::Answer(error.to_string()),
            error => Self::Member(error.to_string()),
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.members).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cluster_and_one_that_lost_its_memory_are_noticed() {
        let seen = |cluster, revision| Seen { cluster, revision };
        assert!(!seen(1, 7).is_another_than(seen(1, 7)));
        assert!(!seen(1, 8).is_another_than(seen(1, 7)));
        assert!(seen(2, 8).is_another_than(seen(1, 7)));
        assert!(seen(1, 2).is_another_than(seen(1, 7)));
    }

    #[test]
    fn an_address_is_refused_unless_it_is_plain_http_and_is_not_repeated() {
        for bad in [
            "https://host:2379",
            "http://me:secret@host:2379",
            "host:2379",
        ] {
            let refused = Link::open(&[bad.to_owned()]).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
        assert!(Link::open(&[]).is_err());
        assert!(Link::open(&["http://host:2379".to_owned()]).is_ok());
    }
}
