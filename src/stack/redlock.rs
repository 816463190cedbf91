//! The five private Redis servers of a Redlock. They know nothing of each other, as it must be.

use std::path::Path;

use futures_util::future::try_join_all;

use super::child::Launcher;
use super::redis::RedisServer;

/// How many nodes: two may fail. (Redis documentation, "Distributed locks".)
pub const NODES: usize = 5;

/// Starts all nodes, each with a folder of its own below `folder`.
///
/// # Errors
/// What keeps any one of them from starting; the others are ended.
pub async fn start(launcher: &Launcher, folder: &Path) -> anyhow::Result<Vec<RedisServer>> {
    let folders = (1..=NODES).map(|node| folder.join(format!("redlock-{node}")));
    let starts = folders.map(|folder| async move { RedisServer::start(launcher, &folder).await });
    try_join_all(starts).await
}
