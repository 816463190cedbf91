//! One etcd, beside a bare put, under a lease, and a delete; and beside its own two transactions.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::stack::{EtcdServer, Launcher};
use etcd_client::{
    Client, Compare, CompareOp, GetOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
};

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
        Ok(vec![
            Bare {
                what: "a put and a delete",
                at_most: Some(AT_MOST),
                once: put_and_delete(client.clone(), lease),
            },
            Bare {
                what: "its own two transactions",
                at_most: None,
                once: own_transactions(client, lease),
            },
        ])
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

fn own_transactions(client: Client, lease: i64) -> Once {
    Box::new(move || {
        let mut client = client.clone();
        Box::pin(async move {
            // The lock uses a name again, too.
            let place = "own/1";
            let taken = client.txn(take(place, lease)).await?;
            let created = taken.header().context("no header")?.revision();
            client.txn(give_back(place, created)).await?;
            Ok(())
        })
    })
}

/// As `stand` in the lock's `line.rs`.
fn take(place: &str, lease: i64) -> Txn {
    let options = PutOptions::new().with_lease(lease).with_prev_key();
    let first = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(1)
        .with_keys_only();
    Txn::new()
        .when([Compare::version("barrier", CompareOp::Equal, 0)])
        .and_then([
            TxnOp::put(place, "", Some(options)),
            TxnOp::get("own/", Some(first)),
        ])
        .or_else([TxnOp::get("barrier", None)])
}

/// As `take_out` there.
fn give_back(place: &str, created: i64) -> Txn {
    let stands = Compare::create_revision(place, CompareOp::Equal, created);
    let delete = TxnOp::delete(place, None);
    Txn::new().when([stands]).and_then([delete])
}
