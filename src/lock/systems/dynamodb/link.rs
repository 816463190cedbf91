//! The HTTP client that all requests of this process share.
//!
//! Region and credentials are read by the first request. The client keeps a pool of connections; one that breaks is
//! replaced by the client itself, and when requests are met with silence the whole pool is, since others in it may be
//! as dead.
//!
//! It promises an answer or an error within the patience of a request. It does not promise that a request that failed
//! was not carried out. The retries of the SDK are off: the layers decide. Only a connection that broke under a request
//! is not their business, since servers close idle ones at any moment.

use std::{
    error::Error,
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client, Config,
    config::{
        BehaviorVersion, Builder, Credentials, Region, SharedHttpClient, retry::RetryConfig,
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};

use super::connections::Connections;
use crate::lock::{error::LockError, gauge::Gauge, unpoisoned};

/// How long making a connection may take.
const CONNECTING: Duration = Duration::from_secs(1);

/// How long one request must have waited in vain for its connection to be taken for dead.
const TELLING_SILENCE: Duration = Duration::from_millis(500);

/// How long a request may take, with all that belongs to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) until: Instant,
    patience: Duration,
}

/// Whether a request whose connection broke is sent again, once and at once, over another one. Only for requests that
/// do no harm when they are carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Once,
    Never,
}

/// Where region and credentials come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The usual `AWS_*` variables, profiles, and what a machine in the cloud is told about itself.
    Environment,
    /// Any will do.
    Local,
}

pub(super) struct Link {
    endpoint: Endpoint,
    access: Access,
    config: OnceCell<Config>,
    /// The client in use, with an empty pool at first.
    current: Mutex<Option<Numbered>>,
    connections: Connections,
    in_flight: Gauge,
    /// How often what is behind the endpoint may have become another server.
    changes: AtomicU64,
    /// Requests in a row that were not answered in time.
    silences: AtomicU32,
}

/// A client, and how many were made before it.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    client: Client,
}

/// A URL, and the same for people, without user and password.
struct Endpoint {
    url: String,
    shown: String,
}

/// Why there is no result.
pub(super) enum Failure<E> {
    /// The server said so.
    Answered(E),
    /// There is no answer.
    NoAnswer(LockError),
}

impl Limit {
    /// From now on.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            until: Instant::now() + patience,
            patience,
        }
    }
}

impl Link {
    pub(super) fn open(url: &str, access: Access) -> Result<Self, LockError> {
        Ok(Self {
            endpoint: Endpoint::parse(url)?,
            access,
            config: OnceCell::new(),
            current: Mutex::new(None),
            connections: Connections::default(),
            in_flight: Gauge::default(),
            changes: AtomicU64::new(0),
            silences: AtomicU32::new(0),
        })
    }

    /// Where requests go, without user and password.
    pub(super) fn address(&self) -> &str {
        &self.endpoint.shown
    }

    /// How often what is behind the endpoint may have become another server: a request failed on its way, or one needed
    /// a new connection although no other was under way, so that the old ones must be gone. A connection that is only
    /// one more beside those in use leads to the same server.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Sends one request, and answers within the limit.
    pub(super) async fn send<T, E, R, Sent>(
        &self,
        limit: Limit,
        repeat: Repeat,
        request: impl Fn(Client) -> Sent,
    ) -> Result<T, Failure<E>>
    where
        Sent: Future<Output = Result<T, SdkError<E, R>>>,
        E: Error + 'static,
        R: fmt::Debug,
    {
        let answer = match self.try_once(limit, &request).await? {
            Err(SdkError::DispatchFailure(failure))
                if repeat == Repeat::Once && !failure.is_user() =>
            {
                self.changes.fetch_add(1, Ordering::Relaxed);
                self.try_once(limit, &request).await?
            }
            answer => answer,
        };
        answer.map_err(|error| self.failure(error))
    }

    /// The outer error is silence.
    async fn try_once<T, E, Sent: Future<Output = T>>(
        &self,
        limit: Limit,
        request: impl Fn(Client) -> Sent,
    ) -> Result<T, Failure<E>> {
        let silence = || Failure::NoAnswer(self.no_answer(limit));
        let ready = timeout_at(limit.until, self.client()).await;
        let Numbered { number, client } =
            ready.map_err(|_| silence())?.map_err(Failure::NoAnswer)?;
        let _counted = self.in_flight.enter();
        let alone = self.in_flight.get() == 1;
        let (sent, connections) = (Instant::now(), self.connections.number());
        let answer = timeout_at(limit.until, request(client)).await;
        match answer {
            Ok(_) => self.silences.store(0, Ordering::Relaxed),
            Err(_) => self.heard_nothing(number, sent.elapsed()),
        }
        if answer.is_err() || (alone && self.connections.number() > connections) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        answer.map_err(|_| silence())
    }

    /// An error that names the server.
    pub(super) fn unavailable(&self, reason: impl fmt::Display) -> LockError {
        LockError::unavailable(format!("dynamodb at {}: {reason}", self.address()))
    }

    /// What the server answered, when it is none of the answers that mean something here.
    pub(super) fn refusal(&self, error: &(impl ProvideErrorMetadata + Error)) -> LockError {
        match (error.code(), error.message()) {
            (Some(code), Some(message)) => self.unavailable(format_args!("{code}: {message}")),
            (Some(code), None) => self.unavailable(code),
            (None, _) => self.unavailable(chain(error)),
        }
    }

    pub(super) fn no_answer(&self, limit: Limit) -> LockError {
        let patience = limit.patience.as_millis();
        self.unavailable(format_args!("no answer within {patience} ms"))
    }

    fn failure<E, R>(&self, error: SdkError<E, R>) -> Failure<E>
    where
        E: Error + 'static,
        R: fmt::Debug,
    {
        match error {
            SdkError::ServiceError(answer) => Failure::Answered(answer.into_err()),
            unanswered => {
                self.changes.fetch_add(1, Ordering::Relaxed);
                // Its own words only say that it failed.
                let cause = unanswered
                    .source()
                    .map_or_else(|| unanswered.to_string(), chain);
                Failure::NoAnswer(self.unavailable(cause))
            }
        }
    }

    /// The client in use, or a new one.
    async fn client(&self) -> Result<Numbered, LockError> {
        let config = self.config.get_or_try_init(|| self.configure()).await?;
        let mut current = unpoisoned::lock(&self.current);
        Ok(current.get_or_insert_with(|| self.make(config, 0)).clone())
    }

    fn make(&self, config: &Config, number: u64) -> Numbered {
        let config = config
            .to_builder()
            .http_client(empty_pool(self.trusted()))
            .build();
        Numbered {
            number,
            client: Client::from_conf(config),
        }
    }

    async fn configure(&self) -> Result<Config, LockError> {
        let access = match self.access {
            Access::Local => local_access(),
            Access::Environment => self.access_of_environment().await?,
        };
        let limits = TimeoutConfig::builder().connect_timeout(CONNECTING).build();
        Ok(access
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&self.endpoint.url)
            .retry_config(RetryConfig::disabled())
            .timeout_config(limits)
            .interceptor(self.connections.clone())
            .build())
    }

    async fn access_of_environment(&self) -> Result<Builder, LockError> {
        let shared = aws_config::defaults(BehaviorVersion::latest())
            .http_client(empty_pool(TrustStore::default()))
            .load()
            .await;
        if shared.region().is_none() {
            return Err(self.unavailable("no region is set; AWS_REGION sets it"));
        }
        Ok(Builder::from(&shared))
    }

    /// The machine's certificates are read only where they are needed: a small container has none.
    fn trusted(&self) -> TrustStore {
        TrustStore::empty().with_native_roots(self.endpoint.url.starts_with("https"))
    }

    /// No answer came in time. One request that could wait for a moment only proves nothing about a pool that everybody
    /// shares; a second one in a row does.
    fn heard_nothing(&self, number: u64, waited: Duration) {
        let before = self.silences.fetch_add(1, Ordering::Relaxed);
        if before == 0 && waited < TELLING_SILENCE {
            return;
        }
        let Some(config) = self.config.get() else {
            return;
        };
        let mut current = unpoisoned::lock(&self.current);
        // Unless somebody has already replaced it.
        if current
            .as_ref()
            .is_some_and(|current| current.number == number)
        {
            *current = Some(self.make(config, number + 1));
        }
    }
}

impl fmt::Debug for Link {
    /// Without the settings, which know the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.address()).finish()
    }
}

impl Endpoint {
    fn parse(url: &str) -> Result<Self, LockError> {
        let bad = || LockError::bad_setting("the DynamoDB endpoint is no URL such as https://host");
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            url: url.to_owned(),
            shown: format!("{scheme}://{host}"),
        })
    }
}

/// An HTTP client without a connection.
fn empty_pool(trusted: TrustStore) -> SharedHttpClient {
    let tls = TlsContext::builder().with_trust_store(trusted).build();
    aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .tls_context(tls.unwrap_or_default())
        .build_https()
}

/// DynamoDB Local asks for a region and for keys, and believes any.
fn local_access() -> Builder {
    Config::builder()
        .region(Region::new("local"))
        .credentials_provider(Credentials::new(
            "doublebook",
            "doublebook",
            None,
            None,
            "local",
        ))
}

/// An error with what led to it: the outermost words alone say little.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_shown_without_its_password() {
        for (url, shown) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("https://ana:secret@db.example/x?y", "https://db.example"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().shown, shown);
        }
        for wrong in ["", "127.0.0.1:8000", "ftp://ana:secret@host", "http://"] {
            let refused = Endpoint::parse(wrong).err().unwrap().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
