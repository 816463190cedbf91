//! HTTP/1.1 to the targets, with one pool of connections each.
//!
//! Promises: a request ends within its limit; a failure has a kind, and says whether the request may have been read.
//! It never follows, repeats or hides anything: a request is sent once.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use super::settings::Target;

/// The longest answer that is read, in bytes: a room of a hundred thousand seats is a tenth of it.
const LONGEST_BODY: usize = 100_000_000;

type Connection = SendRequest<Full<Bytes>>;

/// Sends requests to targets, which are numbered as they were given.
#[derive(Debug)]
pub struct Client {
    targets: Vec<Pool>,
}

#[derive(Debug)]
struct Pool {
    target: Target,
    addresses: Vec<SocketAddr>,
    idle: Mutex<Vec<Connection>>,
    /// Whether its last request had no answer.
    is_silent: AtomicBool,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// No whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// Whether the target may have read the request. If not, nothing was done.
    pub may_be_read: bool,
}

/// Why there was no whole answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The connection was reset.
    #[error("connection reset")]
    Reset,
    /// The connection was closed before the answer was whole.
    #[error("closed before the answer")]
    Closed,
    /// No answer in time.
    #[error("timeout")]
    Timeout,
    /// This process may not open more files.
    #[error("out of file descriptors")]
    FileDescriptors,
    /// This machine has no port left for another connection.
    #[error("out of local ports")]
    LocalPorts,
    /// There is no way to the target.
    #[error("unreachable")]
    Unreachable,
    /// What came is no HTTP.
    #[error("not HTTP")]
    NotHttp,
    /// More came than any replica answers.
    #[error("endless answer")]
    Endless,
    /// Anything else.
    #[error("other failure")]
    Other,
}

impl Client {
    /// Looks up the targets' addresses. Connects to nothing yet.
    ///
    /// # Errors
    /// The first target that has no address.
    pub async fn new(targets: &[Target]) -> Result<Self, (Target, io::Error)> {
        let mut pools = Vec::with_capacity(targets.len());
        for target in targets {
            let found = tokio::net::lookup_host(target.authority()).await;
            let addresses = found.map_err(|error| (target.clone(), error))?.collect();
            pools.push(Pool {
                target: target.clone(),
                addresses,
                idle: Mutex::default(),
                is_silent: AtomicBool::default(),
            });
        }
        Ok(Self { targets: pools })
    }

    /// A target by its number.
    pub fn target(&self, number: usize) -> Option<&Target> {
        self.targets.get(number).map(|pool| &pool.target)
    }

    /// Whether a target gave no answer to the last request that it was sent.
    pub fn is_silent(&self, number: usize) -> bool {
        self.targets
            .get(number)
            .is_none_or(|pool| pool.is_silent.load(Ordering::Relaxed))
    }

    /// Sends a request to a target and reads the whole answer, within a limit.
    ///
    /// # Errors
    /// [`Failure`], also when there is no such target.
    pub async fn send(
        &self,
        target: usize,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let pool = self
            .targets
            .get(target)
            .ok_or(Failure::unsent(FailureKind::Unreachable))?;
        let request = pool.request(method, path, body)?;
        let sent = AtomicBool::new(false);
        let answer = tokio::time::timeout(limit, pool.exchange(request, &sent)).await;
        let is_answered = matches!(answer, Ok(Ok(_)));
        pool.is_silent.store(!is_answered, Ordering::Relaxed);
        let failed = |kind| Failure {
            kind,
            may_be_read: sent.load(Ordering::Relaxed),
        };
        answer.unwrap_or(Err(FailureKind::Timeout)).map_err(failed)
    }
}

impl Failure {
    fn unsent(kind: FailureKind) -> Self {
        Self {
            kind,
            may_be_read: false,
        }
    }
}

impl Pool {
    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.target.authority())
            .header(CONTENT_TYPE, "application/json");
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        request
            .body(body)
            .map_err(|_| Failure::unsent(FailureKind::Other))
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        sent: &AtomicBool,
    ) -> Result<Answer, FailureKind> {
        let mut connection = self.connection().await?;
        sent.store(true, Ordering::Relaxed);
        let answer = connection.send_request(request).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST_BODY).collect().await?.to_bytes();
        self.idle().push(connection);
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    /// One that is open still, or a new one.
    async fn connection(&self) -> Result<Connection, FailureKind> {
        loop {
            let Some(mut idle) = self.idle().pop() else {
                return self.connect().await;
            };
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
    }

    async fn connect(&self) -> Result<Connection, FailureKind> {
        let stream = TcpStream::connect(self.addresses.as_slice()).await;
        let stream = stream.map_err(|error| FailureKind::of(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| FailureKind::of(&error))?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the connection; what goes wrong with it is told to whoever waits for an answer.
        tokio::spawn(driver);
        Ok(connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureKind {
    fn of(error: &io::Error) -> Self {
        let errno = error.raw_os_error().map(Errno::from_raw);
        match (error.kind(), errno) {
            (_, Some(Errno::EMFILE | Errno::ENFILE)) => Self::FileDescriptors,
            (ErrorKind::AddrNotAvailable, _) => Self::LocalPorts,
            (ErrorKind::ConnectionRefused, _) => Self::Refused,
            (ErrorKind::ConnectionReset | ErrorKind::BrokenPipe, _) => Self::Reset,
            (ErrorKind::ConnectionAborted | ErrorKind::UnexpectedEof, _) => Self::Closed,
            (ErrorKind::TimedOut, _) => Self::Timeout,
            (ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable, _) => Self::Unreachable,
            _ => Self::Other,
        }
    }
}

impl From<Box<dyn Error + Send + Sync>> for FailureKind {
    /// What can go wrong while a body of limited length is read.
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        if error.is::<LengthLimitError>() {
            return Self::Endless;
        }
        error
            .downcast::<hyper::Error>()
            .map_or(Self::Other, |error| Self::from(*error))
    }
}

impl From<hyper::Error> for FailureKind {
    fn from(error: hyper::Error) -> Self {
        if error.is_parse() {
            return Self::NotHttp;
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Self::Closed;
        }
        let io = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>());
        io.map_or(Self::Other, Self::of)
    }
}
