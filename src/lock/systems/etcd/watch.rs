//! Waking a waiter when who stands before it is gone.
//!
//! Only the one before it is watched, so that a release wakes one waiter and not all. (ZooKeeper's lock recipe; etcd's
//! `client/v3/concurrency` does the same.)
//!
//! It does not promise to wake: a watch ends when its connection is cut, or its member has no leader. Waiters also ask
//! by themselves now and then, and then a new watch is begun.

use std::sync::Arc;

use etcd_client::{
    GetOptions, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, WatchFilterType, WatchOptions,
};
use tokio::time::{Duration, Instant};

use super::{
    link::{Failure, Link, Repeat},
    names,
};
use crate::lock::{key::Key, wakeups::Wakeups};

/// How long it may take to find out who is before, and to begin to watch it.
const BEGINNING: Duration = Duration::from_secs(5);

/// Waits until the one before who was created at `own` is gone, and wakes.
pub(super) async fn until_gone(link: Arc<Link>, key: Key, own: i64, hub: Arc<Wakeups>) {
    match before(&link, &key, own).await {
        Ok(Some((before, revision))) => {
            if let Err(failure) = gone(&link, &before, revision).await {
                tracing::debug!(lock.key = %key, ?failure, "a watch ended");
                return;
            }
        }
        Ok(None) => {}
        Err(failure) => {
            tracing::debug!(lock.key = %key, ?failure, "who is before was not found out");
            return;
        }
    }
    hub.wake(&key);
}

/// The key that was created last before `own`, and the revision at which it was there.
async fn before(link: &Link, key: &Key, own: i64) -> Result<Option<(Vec<u8>, i64)>, Failure> {
    let last = GetOptions::new()
        .with_prefix()
        .with_max_create_revision(own - 1)
        .with_sort(SortTarget::Create, SortOrder::Descend)
        .with_limit(1)
        .with_keys_only();
    let txn = Txn::new().and_then([TxnOp::get(names::folder(key), Some(last))]);
    let until = Instant::now() + BEGINNING;
    let answer = link.txn(&txn, until, Repeat::AtEachMember).await?.answer;
    let revision = answer.header().map_or(0, |header| header.revision());
    Ok(match answer.op_responses().first() {
        Some(TxnOpResponse::Get(read)) => read
            .kvs()
            .first()
            .map(|before| (before.key().to_vec(), revision)),
        _ => None,
    })
}

/// Waits until the key is deleted after `revision`. A watch that the server cancels, since that revision was compacted
/// away, tells nothing; then it is time to ask again, too.
async fn gone(link: &Link, key: &[u8], revision: i64) -> Result<(), Failure> {
    let options = WatchOptions::new()
        .with_start_revision(revision + 1)
        .with_filters([WatchFilterType::NoPut]);
    let until = Instant::now() + BEGINNING;
    let mut watch = link.watch(key, options, until).await?;
    while let Some(told) = watch.message().await? {
        if told.canceled() || !told.events().is_empty() {
            return Ok(());
        }
    }
    Err(Failure::Member("the stream was closed".to_owned()))
}
