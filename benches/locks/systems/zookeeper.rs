//! One ZooKeeper, beside making and deleting a bare ephemeral node; and beside its own two requests.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::stack::{Launcher, ZooKeeperServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::{Acls, Client, CreateMode};

use super::{AT_MOST, Bare, Lock, Once, Server, System, TTL, layered, owner};

pub struct ZooKeeper;

/// The parent of the bare nodes.
const FOLDER: &str = "/bare";

#[async_trait(?Send)]
impl System for ZooKeeper {
    fn name(&self) -> &'static str {
        "zookeeper"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let server = ZooKeeperServer::start(launcher, folder).await?;
        Ok(Server::new(server.url(), server))
    }

    async fn version(&self, address: &str) -> Result<String> {
        let version = said(address, "Zookeeper version: ").await?;
        let number = version.split('-').next().unwrap_or_default();
        Ok(format!("ZooKeeper {number}"))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        Ok(layered(systems::ZooKeeper::open(address, TTL)?))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let connector = Client::connector().with_session_timeout(TTL);
        let client = connector.connect(address).await?;
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.create(FOLDER, b"", &persistent).await?;
        Ok(vec![
            Bare {
                what: "a create and a delete",
                at_most: Some(AT_MOST),
                once: create_and_delete(client.clone()),
            },
            Bare {
                what: "its own two requests",
                at_most: None,
                once: own_requests(client),
            },
        ])
    }

    /// All packets: a few of them only keep a session alive.
    async fn requests(&self, address: &str) -> Result<Option<u64>> {
        Ok(Some(said(address, "Received: ").await?.parse()?))
    }
}

/// What the server says of itself, on the line that begins with this.
async fn said(address: &str, beginning: &str) -> Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(b"srvr").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let line = answer.lines().find_map(|line| line.strip_prefix(beginning));
    let line = line.with_context(|| format!("no {beginning:?} in {answer:?}"))?;
    Ok(line.to_owned())
}

fn create_and_delete(client: Client) -> Once {
    Box::new(move || {
        let client = client.clone();
        Box::pin(async move {
            let node = format!("{FOLDER}/{}", owner());
            let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
            client.create(&node, b"", &ephemeral).await?;
            client.delete(&node, None).await?;
            Ok(())
        })
    })
}

/// As `make` and `delete` in the lock's `session.rs`.
fn own_requests(client: Client) -> Once {
    Box::new(move || {
        let client = client.clone();
        Box::pin(async move {
            let node = format!("{FOLDER}/{}", owner());
            let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
            let mut make = client.new_multi_writer();
            make.add_create(&node, b"", &ephemeral)?;
            make.add_set_data(FOLDER, b"", None)?;
            make.commit().await?;
            client.delete(&node, None).await?;
            Ok(())
        })
    })
}
