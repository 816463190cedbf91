//! One etcd, beside a bare put, under a lease, and a delete.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::stack::{EtcdServer, Launcher};
use etcd_client::{Client, PutOptions};

use super::{AT_MOST, Bare, Lock, Once, Server, System, layered, owner};

pub struct Etcd;

/// How long the lease of the bare puts lasts, in s: nobody keeps it alive, and it ends with its server.
const LEASE: i64 = 3600;

#[async_trait(?Send)]
impl System for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let server = EtcdServer::start(launcher, folder).await?;
        Ok(Server::new(server.url(), server))
    }

    async fn version(&self, address: &str) -> Result<String> {
        let status = connect(address).await?.status().await?;
        Ok(format!("etcd {}", status.version()))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        Ok(layered(systems::Etcd::open(&[address.to_owned()])?))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let mut client = connect(address).await?;
        let lease = client.lease_grant(LEASE, None).await?.id();
        Ok(vec![Bare {
            what: "a put and a delete",
            at_most: Some(AT_MOST),
            once: put_and_delete(client, lease),
        }])
    }

    /// All messages, so that what a stream asks for counts, too.
    async fn requests(&self, address: &str) -> Result<Option<u64>> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let asked = client.get(format!("{address}/metrics")).send().await?;
        let metrics = asked.error_for_status()?.text().await?;
        let received = metrics
            .lines()
            .filter(|line| line.starts_with("grpc_server_msg_received_total{"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(Some(received.sum::<f64>() as u64))
    }
}

async fn connect(address: &str) -> Result<Client> {
    Ok(Client::connect([address], None).await?)
}

fn put_and_delete(client: Client, lease: i64) -> Once {
    Box::new(move || {
        let mut client = client.clone();
        Box::pin(async move {
            let key = format!("bare/{}", owner());
            let options = PutOptions::new().with_lease(lease);
            client.put(key.as_str(), "", Some(options)).await?;
            client.delete(key, None).await?;
            Ok(())
        })
    })
}
