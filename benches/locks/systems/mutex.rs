//! The mutex: what the layers alone cost.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::stack::Launcher;

use super::{Bare, Lock, Server, System, layered};

pub struct Mutex;

#[async_trait(?Send)]
impl System for Mutex {
    fn name(&self) -> &'static str {
        "mutex"
    }

    fn spans_processes(&self) -> bool {
        false
    }

    async fn start(&self, _: &Launcher, _: &Path) -> Result<Server> {
        Ok(Server::new(String::new(), ()))
    }

    async fn version(&self, _: &str) -> Result<String> {
        Ok("no server".to_owned())
    }

    async fn open(&self, _: &str) -> Result<Arc<dyn Lock>> {
        Ok(layered(systems::Mutex::default()))
    }

    async fn bare(&self, _: &str) -> Result<Vec<Bare>> {
        Ok(Vec::new())
    }
}
