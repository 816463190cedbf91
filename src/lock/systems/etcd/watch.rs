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
    if let Err(failure) = until_first_or_gone(&link, &key, own).await {
        tracing::debug!(lock.key = %key, ?failure, "a watch ended");
        return;
    }
    hub.wake(&key);
}

async fn until_first_or_gone(link: &Link, key: &Key, own: i64) -> Result<(), Failure> {
    let line = Some(older_than(own).with_prefix());
    match last_of(link, names::folder(key).into(), line).await? {
        Some(before) => gone(link, before, own).await,
        None => Ok(()),
    }
}

/// Waits until a key that is older than `own` is deleted.
///
/// It is watched from now on and looked for once more. A watch from the revision at which it was found would miss
/// nothing either; but when anything was written since, etcd keeps such a watch apart from those that it tells at once,
/// and looks after it every 100 ms. (`syncWatchersLoop` in etcd's `watchable_store.go`.)
async fn gone(link: &Link, key: Vec<u8>, own: i64) -> Result<(), Failure> {
    let options = WatchOptions::new().with_filters([WatchFilterType::NoPut]);
    let until = Instant::now() + BEGINNING;
    let mut watch = link.watch(&key, options, until).await?;
    while let Some(told) = watch.message().await? {
        // A watch that the server cancels tells nothing; then it is time to ask again, too.
        if told.canceled() || !told.events().is_empty() {
            return Ok(());
        }
        if told.created() {
            let still_there = Some(older_than(own));
            if last_of(link, key.clone(), still_there).await?.is_none() {
                return Ok(());
            }
        }
    }
    Err(Failure::Member("the stream was closed".to_owned()))
}

/// The last one that was created before `own`.
fn older_than(own: i64) -> GetOptions {
    GetOptions::new()
        .with_max_create_revision(own - 1)
        .with_sort(SortTarget::Create, SortOrder::Descend)
        .with_limit(1)
        .with_keys_only()
}

/// The first key that a read brings.
async fn last_of(
    link: &Link,
    key: Vec<u8>,
    options: Option<GetOptions>,
) -> Result<Option<Vec<u8>>, Failure> {
    let txn = Txn::new().and_then([TxnOp::get(key, options)]);
    let until = Instant::now() + BEGINNING;
    let answer = link.txn(&txn, until, Repeat::AtEachMember).await.answer?;
    Ok(match answer.op_responses().first() {
        Some(TxnOpResponse::Get(read)) => read.kvs().first().map(|found| found.key().to_vec()),
        _ => None,
    })
}
