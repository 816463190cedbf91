//! The crate `rslock` on one Redis, for comparison: no token, no line; who is refused asks again after 0 to 200 ms.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::rslock::LockManager;
use anyhow::Result;
use async_trait::async_trait;
use doublebook::stack::Launcher;

use super::{Bare, Lock, Server, System, TTL, redis};

/// Its name.
pub const RSLOCK: &str = "rslock";

pub struct Rslock;

#[async_trait(?Send)]
impl System for Rslock {
    fn name(&self) -> &'static str {
        RSLOCK
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        redis::start(launcher, folder).await
    }

    async fn version(&self, address: &str) -> Result<String> {
        Ok(format!("rslock 0.10, {}", redis::version(address).await?))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        Ok(Arc::new(Manager(LockManager::new(vec![address]))))
    }

    async fn bare(&self, _: &str) -> Result<Vec<Bare>> {
        Ok(Vec::new())
    }
}

struct Manager(LockManager);

#[async_trait]
impl Lock for Manager {
    async fn hold(&self, key: &str, work: fn()) -> Result<Duration> {
        let since = Instant::now();
        let held = self.0.acquire(key, TTL).await?;
        let waited = since.elapsed();
        work();
        held.release().await;
        Ok(waited)
    }
}
