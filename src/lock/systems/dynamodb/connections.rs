//! Counts the TCP connections that carried a request.
//!
//! The HTTP client keeps them to itself, in a pool that grows, shrinks and replaces what broke without a word. Its
//! own end of a connection tells a new one from one that was seen before.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
};
use aws_smithy_runtime_api::client::connection::CaptureSmithyConnection;

use crate::lock::unpoisoned;

/// How many connections are remembered. When there are more, all are forgotten, and those still in use count twice:
/// a server is then compared once more than needed.
const MOST_REMEMBERED: usize = 256;

/// The count. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Connections(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    number: AtomicU64,
    seen: Mutex<HashSet<SocketAddr>>,
}

impl Connections {
    pub(super) fn number(&self) -> u64 {
        self.0.number.load(Ordering::Relaxed)
    }

    fn note(&self, own_end: SocketAddr) {
        let mut seen = unpoisoned::lock(&self.0.seen);
        if seen.len() >= MOST_REMEMBERED {
            seen.clear();
        }
        if seen.insert(own_end) {
            self.0.number.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Intercept for Connections {
    fn name(&self) -> &'static str {
        "Connections"
    }

    fn read_after_transmit(
        &self,
        _: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        request: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let connection = request.load::<CaptureSmithyConnection>();
        let connection = connection.and_then(CaptureSmithyConnection::get);
        if let Some(own_end) = connection.and_then(|connection| connection.local_addr()) {
            self.note(own_end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn a_connection_counts_once() {
        let connections = Connections::default();
        for port in [1, 2, 1, 2] {
            connections.note(end(port));
        }
        assert_eq!(connections.number(), 2);
    }

    #[test]
    fn few_are_remembered() {
        let connections = Connections::default();
        (0..10_000).for_each(|port| connections.note(end(port)));
        assert_eq!(connections.number(), 10_000);
        assert!(unpoisoned::lock(&connections.0.seen).len() <= MOST_REMEMBERED);
    }
}
