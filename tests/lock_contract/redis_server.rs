//! A private `redis-server` on a free port, which ends with its test.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::pair::{PATIENCE, eventually};

/// How many ports are tried: between finding one free and taking it, somebody else may.
const PORTS: usize = 5;

/// What it is told besides.
type Flags = Vec<(&'static str, String)>;

pub struct RedisServer {
    port: u16,
    flags: Flags,
    process: Child,
    folder: TempDir,
}

impl RedisServer {
    pub async fn start() -> Result<Self> {
        Self::start_with(|| Ok(Vec::new())).await
    }

    /// A Redis Cluster of one node, which has all slots. (Redis 7 or newer.)
    pub async fn start_as_a_cluster() -> Result<Self> {
        let bus = || free_port().map(|port| vec![("--cluster-port", port.to_string())]);
        let clustered = || {
            let mut flags = bus()?;
            flags.push(("--cluster-enabled", "yes".to_owned()));
            Ok(flags)
        };
        let server = Self::start_with(clustered).await?;
        let all = ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"];
        server.run::<()>(&all).await?;
        eventually("the cluster has all slots", async || {
            let info = server.run::<String>(&["CLUSTER", "INFO"]).await;
            info.is_ok_and(|info| info.contains("cluster_state:ok"))
        })
        .await?;
        Ok(server)
    }

    async fn start_with(flags: impl Fn() -> Result<Flags>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for _ in 0..PORTS {
            let (port, flags) = (free_port()?, flags()?);
            let mut process = spawn(port, &folder, &flags)?;
            if answers(port, &mut process).await? {
                return Ok(Self {
                    port,
                    flags,
                    process,
                    folder,
                });
            }
        }
        bail!("redis-server did not start on any of {PORTS} ports");
    }

    pub fn url(&self) -> String {
        url(self.port)
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Ends it at once, with all it remembers.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Starts it again on the same port, empty.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = spawn(self.port, &self.folder, &self.flags)?;
        let up = answers(self.port, &mut self.process).await?;
        up.then_some(()).context("redis-server did not come back")
    }

    /// Runs a command on a connection of its own.
    pub async fn run<T: redis::FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let mut connection = redis::Client::open(self.url())?
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        Ok(command.query_async(&mut connection).await?)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn spawn(port: u16, folder: &TempDir, flags: &Flags) -> Result<Child> {
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(folder.path())
        .args(
            flags
                .iter()
                .flat_map(|(flag, value)| [*flag, value.as_str()]),
        )
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start redis-server (package redis-server)")
}

/// Waits until it answers; false when it ended instead, as it does when the port is taken.
async fn answers(port: u16, process: &mut Child) -> Result<bool> {
    let client = redis::Client::open(url(port))?;
    let mut ended = false;
    eventually("redis-server answers", async || {
        ended = !matches!(process.try_wait(), Ok(None));
        ended || ping(&client).await
    })
    .await?;
    Ok(!ended)
}

async fn ping(client: &redis::Client) -> bool {
    let asked = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING")
            .query_async::<String>(&mut connection)
            .await
    };
    let answer = tokio::time::timeout(Duration::from_secs(1), asked).await;
    matches!(answer, Ok(Ok(_)))
}
