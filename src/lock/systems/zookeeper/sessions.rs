//! The sessions of this process: one that all claims share, and one for each claim that must stand alone.
//!
//! The client keeps a session alive for as long as it is connected. So the shared one stays connected, and one that
//! stands alone is left between its requests: its connection is closed, nobody pings for it, and its time runs.
//!
//! A session that has ended is never used again, and neither is what was made in it. It is replaced by the next
//! claim that needs one: one task makes it, the others wait for that.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Mutex;
use zookeeper_client::{Client, Connector, Error, SessionInfo};

use super::session::{Session, Trouble};
use crate::lock::error::LockError;

/// How long a connection may say nothing until it is taken for dead. At most half a session: the other half is for the
/// next connection.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

pub(super) struct Sessions {
    /// `host:port`, with commas between them.
    servers: String,
    /// What is asked for.
    wanted: Duration,
    /// What the ensemble made of it, in ms; 0 until it was asked.
    granted: AtomicU64,
    /// Locked while a new one is made, so that one task makes it for all.
    shared: Mutex<Option<Arc<Session>>>,
    made: AtomicU64,
}

impl Sessions {
    pub(super) fn at(servers: &str, wanted: Duration) -> Result<Self, LockError> {
        if servers.split(',').any(|server| server.trim().is_empty()) {
            return Err(LockError::bad_setting(
                "ZooKeeper's servers are given as host:port,host:port",
            ));
        }
        Ok(Self {
            servers: servers.to_owned(),
            wanted,
            granted: AtomicU64::new(0),
            shared: Mutex::default(),
            made: AtomicU64::new(0),
        })
    }

    pub(super) fn servers(&self) -> &str {
        &self.servers
    }

    /// How long a session lasts that is not heard of: what the ensemble granted or, before it was asked, what will be
    /// asked of it.
    pub(super) fn time(&self) -> Duration {
        match self.granted.load(Ordering::Relaxed) {
            0 => self.wanted,
            ms => Duration::from_millis(ms),
        }
    }

    /// How many shared sessions were made. Those that stand alone come and go with their claims.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The session that all claims share. One whose connection does not come back is replaced, too: what stands in it
    /// keeps it for as long as it lasts.
    pub(super) async fn shared(&self) -> Result<Arc<Session>, Trouble> {
        let known = self.shared.lock().await.clone();
        if let Some(session) = known
            && session.connected().await.is_ok()
        {
            return Ok(session);
        }
        let mut shared = self.shared.lock().await;
        if let Some(session) = &*shared
            && session.is_connected()
        {
            return Ok(session.clone());
        }
        let session = Arc::new(self.connect(self.connector()).await?);
        self.made.fetch_add(1, Ordering::Relaxed);
        tracing::info!(servers = self.servers, "a ZooKeeper session has begun");
        Ok(shared.insert(session).clone())
    }

    /// A session for one claim. It ends when its time is over after the last request, not when it is dropped.
    pub(super) async fn begin_alone(&self) -> Result<Session, Trouble> {
        self.connect(self.connector().with_detached()).await
    }

    /// Takes up a session that stands alone, for a request, which makes it last for another time.
    pub(super) async fn take_up(&self, session: &SessionInfo) -> Result<Session, Trouble> {
        let connector = self.connector().with_detached();
        self.connect(connector.with_session(session.clone())).await
    }

    /// Takes up a session that stands alone for the last time: it is closed when this is dropped.
    pub(super) async fn take_up_to_end(&self, session: &SessionInfo) -> Result<Session, Trouble> {
        self.connect(self.connector().with_session(session.clone()))
            .await
    }

    /// Tries each server once. When none can be reached now, that is the answer; the client would go on trying.
    fn connector(&self) -> Connector {
        Client::connector()
            .with_session_timeout(self.wanted)
            .with_connection_timeout(LONGEST_SILENCE.min(self.wanted / 2))
            .with_fail_eagerly()
    }

    async fn connect(&self, connector: Connector) -> Result<Session, Trouble> {
        let client = connector.connect(&self.servers).await;
        let client = client.map_err(|error| match error {
            Error::NoHosts => Trouble::Unreachable("no server can be reached".to_owned()),
            error => error.into(),
        })?;
        let session = Session::new(client);
        let granted = u64::try_from(session.time().as_millis()).unwrap_or(u64::MAX);
        self.granted.store(granted, Ordering::Relaxed);
        Ok(session)
    }
}
