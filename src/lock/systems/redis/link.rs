//! The one connection to a Redis server that all requests of this process share.
//!
//! It is made by the first request that needs it, and made anew by the next one after it broke; one task makes it,
//! the others wait for that. A broken connection is never waited for: whoever finds it broken drops it.
//!
//! It promises an answer or an error within the patience of a request. It does not promise that a request that
//! failed was not carried out.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, ScriptInvocation,
    ServerErrorKind, aio::MultiplexedConnection,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::lock::{error::LockError, unpoisoned};

/// How long making a connection may take. A server nearby answers in milliseconds.
pub(in crate::lock::systems) const CONNECTING: Duration = Duration::from_secs(1);

/// Whether a request that found its connection dead is sent again, once and at once, over a new one. Only for
/// requests that do no harm when they are carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lock::systems) enum Repeat {
    Once,
    Never,
}

pub(in crate::lock::systems) struct Link {
    client: Client,
    current: Arc<Current>,
    /// Locked while a connection is made, so that one task makes it for all.
    connecting: Arc<tokio::sync::Mutex<()>>,
    /// Requests in a row that were not answered in time.
    silences: AtomicU32,
}

/// The connection in use.
#[derive(Default)]
struct Current {
    connection: Mutex<Option<Numbered>>,
    made: AtomicU64,
}

/// A connection and how many were made before it.
#[derive(Clone)]
struct Numbered {
    number: u64,
    connection: MultiplexedConnection,
}

/// Why a try failed.
enum Failure {
    /// There is no connection to be had.
    Connecting(RedisError),
    /// The request failed; it may have been carried out.
    Request(RedisError),
    /// There was no answer in time.
    Silence,
}

/// How long one request must have waited in vain for its connection to be taken for dead.
const TELLING_SILENCE: Duration = Duration::from_millis(500);

impl Link {
    pub(in crate::lock::systems) fn open(url: &str) -> Result<Self, LockError> {
        let client = Client::open(url)
            .map_err(|error| LockError::bad_setting(format!("bad Redis URL: {error}")))?;
        Ok(Self {
            client,
            current: Arc::default(),
            connecting: Arc::default(),
            silences: AtomicU32::new(0),
        })
    }

    pub(in crate::lock::systems) fn client(&self) -> &Client {
        &self.client
    }

    /// Host and port, without user and password.
    pub(in crate::lock::systems) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    pub(in crate::lock::systems) fn connections(&self) -> u64 {
        self.current.made.load(Ordering::Relaxed)
    }

    /// Runs a script.
    pub(in crate::lock::systems) async fn run<T: FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
        patience: Duration,
        repeat: Repeat,
    ) -> Result<T, LockError> {
        let until = Instant::now() + patience;
        let answer = match self.try_once(call, until, patience).await {
            Err(Failure::Request(error))
                if repeat == Repeat::Once && error.is_connection_dropped() =>
            {
                self.try_once(call, until, patience).await
            }
            answer => answer,
        };
        answer.map_err(|failure| self.unavailable(failure, patience))
    }

    async fn try_once<T: FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
        until: Instant,
        patience: Duration,
    ) -> Result<T, Failure> {
        let Numbered {
            number,
            mut connection,
        } = timeout_at(until, self.connect())
            .await
            .map_err(|_| Failure::Silence)?
            .map_err(Failure::Connecting)?;
        let answer = timeout_at(until, call.invoke_async(&mut connection))
            .await
            .map_err(|_| Failure::Silence)
            .and_then(|answer| answer.map_err(Failure::Request));
        let dead = match &answer {
            Ok(_) => self.heard(),
            Err(Failure::Silence) => self.heard_nothing(patience),
            Err(failure) => failure.ends_the_connection(),
        };
        if dead {
            self.current.forget(number);
        }
        answer
    }

    /// The connection in use, or a new one.
    async fn connect(&self) -> Result<Numbered, RedisError> {
        if let Some(current) = self.current.get() {
            return Ok(current);
        }
        let turn = self.connecting.clone().lock_owned().await;
        if let Some(current) = self.current.get() {
            return Ok(current);
        }
        let (client, current, address) =
            (self.client.clone(), self.current.clone(), self.address());
        // The first in line may have only a moment left: the connection is made all the same, for those behind.
        let connecting = tokio::spawn(async move {
            let _turn = turn;
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECTING))
                // Each request brings its own limit.
                .set_response_timeout(None);
            let connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            tokio::spawn(warn_of_eviction(connection.clone(), address));
            Ok(current.set(connection))
        });
        connecting
            .await
            .unwrap_or_else(|ended| Err(io::Error::other(ended).into()))
    }

    /// An answer came: whatever was late before was only late.
    fn heard(&self) -> bool {
        self.silences.store(0, Ordering::Relaxed);
        false
    }

    /// No answer came in time; says whether the connection is to be taken for dead. One request that could wait for a
    /// moment only proves nothing about a connection that everybody shares; a second one in a row does.
    fn heard_nothing(&self, patience: Duration) -> bool {
        let before = self.silences.fetch_add(1, Ordering::Relaxed);
        before > 0 || patience >= TELLING_SILENCE
    }

    fn unavailable(&self, failure: Failure, patience: Duration) -> LockError {
        let address = self.address();
        LockError::unavailable(match failure {
            Failure::Silence => {
                format!(
                    "redis at {address}: no answer within {} ms",
                    patience.as_millis()
                )
            }
            Failure::Connecting(error) => format!("redis at {address}: cannot connect: {error}"),
            Failure::Request(error) => format!("redis at {address}: {error}"),
        })
    }
}

impl Current {
    fn get(&self) -> Option<Numbered> {
        unpoisoned::lock(&self.connection).clone()
    }

    fn set(&self, connection: MultiplexedConnection) -> Numbered {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        unpoisoned::lock(&self.connection)
            .insert(Numbered { number, connection })
            .clone()
    }

    /// Drops a connection, unless somebody has already replaced it.
    fn forget(&self, number: u64) {
        unpoisoned::lock(&self.connection).take_if(|current| current.number == number);
    }
}

/// A server that may evict any key when its memory is full can forget a lock that is held, and the counter. Said once
/// for each connection. A server that does not tell its policy is not warned of.
async fn warn_of_eviction(mut connection: MultiplexedConnection, address: String) {
    let mut question = redis::cmd("INFO");
    let asked = question
        .arg("memory")
        .query_async::<String>(&mut connection);
    let Ok(Ok(memory)) = timeout(CONNECTING, asked).await else {
        return;
    };
    if let Some(policy) = evicting_policy(&memory) {
        tracing::warn!(
            "redis at {address} has the maxmemory-policy {policy}: when its memory is full it forgets locks that are \
             held, and the counter of their tokens; set it to noeviction"
        );
    }
}

/// The policy, if it lets any key go.
fn evicting_policy(memory: &str) -> Option<&str> {
    memory
        .lines()
        .find_map(|line| line.strip_prefix("maxmemory_policy:"))
        .filter(|policy| policy.starts_with("allkeys-"))
}

impl fmt::Debug for Link {
    /// Without the client, which knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.address()).finish()
    }
}

impl Failure {
    /// Whether the next request needs a new connection. A server that became read-only was a primary once: its
    /// name may lead to the new primary now.
    fn ends_the_connection(&self) -> bool {
        match self {
            Self::Connecting(_) | Self::Silence => false,
            Self::Request(error) => {
                error.is_io_error() || error.is_unrecoverable_error() || is_of_a_replica(error)
            }
        }
    }
}

/// Whether a server refuses to write because it is a replica. Before Redis 7, what is raised inside of a script is told as
/// an error of the script, with its own words at the end.
fn is_of_a_replica(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
        || error
            .detail()
            .is_some_and(|detail| detail.contains("READONLY"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is what Redis 7 says to a script, the second what 5 and 6 say.
    #[test]
    fn a_server_that_became_a_replica_is_known_by_its_words() {
        let told = |words: &str| {
            let answer = redis::parse_redis_value(format!("-{words}\r\n").as_bytes()).unwrap();
            let error = answer.extract_error().unwrap_err();
            Failure::Request(error).ends_the_connection()
        };
        assert!(told(
            "READONLY You can't write against a read only replica. script: a1, on @user_script:12."
        ));
        assert!(told(
            "ERR Error running script (call to f_a1): @user_script:12: @user_script: 12: -READONLY You can't write \
             against a read only replica."
        ));
        assert!(!told(
            "ERR Error running script (call to f_a1): @user_script:12: WRONGTYPE Operation against a key"
        ));
    }
}
