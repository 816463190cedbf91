//! A private etcd: a cluster of one, on loopback, its data kept from run to run.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use nix::unistd::Pid;

use super::child::Program;
use super::found::Known;
use super::port;
use super::server::{Kind, Place, Server};

/// A running etcd.
pub type EtcdServer = Server<Etcd>;

/// etcd, as a kind of server.
#[derive(Debug)]
pub struct Etcd;

#[async_trait]
impl Kind for Etcd {
    const KNOWN: Known = Known::Etcd;
    const TITLE: &'static str = "etcd";
    /// It elects itself within a second or two; on a slow disk it replays its log first.
    const START_DEADLINE: Duration = Duration::from_secs(30);

    fn program(program: &Path, place: &Place) -> anyhow::Result<Program> {
        let clients = Self::url(place.port);
        let peers = Self::url(place.peer_port);
        // Its own variables would be settings of this one, and beside a flag each is an error.
        let variables = std::env::vars_os().map(|(name, _)| name);
        let own = variables.filter(|name| name.to_string_lossy().starts_with("ETCD_"));
        Ok(own
            .fold(Program::new(program), Program::without_env)
            .args(["--name", "doublebook"])
            .arg("--data-dir")
            .arg(place.folder.join("etcd"))
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers])
            .args(["--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("doublebook={peers}")])
            // Every lock that is taken and given back is two revisions of history, which nobody asks for.
            .args(["--auto-compaction-mode", "revision"])
            .args(["--auto-compaction-retention", "10000"])
            .args(["--log-level", "warn"])
            .log_to(place.folder.join("etcd.log")))
    }

    async fn answers(place: &Place, pid: Pid) -> bool {
        port::is_listened_on_by(place.port, pid) && is_healthy(place.port).await
    }

    fn url(port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }
}

/// Healthy means that it has a leader and can write.
async fn is_healthy(port: u16) -> bool {
    let Ok(client) = reqwest::Client::builder().no_proxy().build() else {
        return false;
    };
    client
        .get(format!("{}/health", Etcd::url(port)))
        .send()
        .await
        .is_ok_and(|answer| answer.status().is_success())
}
