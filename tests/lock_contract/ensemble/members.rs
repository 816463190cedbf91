//! Three members of one etcd or ZooKeeper, each a process that can be killed and started again on its data.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use doublebook::{
    lock::{
        LockService,
        systems::{Etcd, ZooKeeper},
    },
    stack::{
        Launcher,
        child::{Guarded, Program},
        found::{self, Known},
        port,
    },
};
use etcd_client::Client;
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::ports::free_ports;

/// One of them may fail.
const MEMBERS: usize = 3;

/// How long they may take to agree on a leader: a busy machine starts three Java machines slowly.
const AGREEMENT: Duration = Duration::from_secs(120);

/// How long one question to a member may take.
const QUESTION: Duration = Duration::from_secs(2);

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(100);

/// What they are members of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Etcd,
    ZooKeeper,
}

/// A server that ends with its value.
struct Member {
    client_port: u16,
    program: Program,
    process: Guarded,
}

/// All of them.
pub struct Ensemble {
    kind: Kind,
    launcher: Launcher,
    members: Vec<Member>,
    _folder: TempDir,
}

/// The ports of a member: for clients, for the others, and for elections.
#[derive(Debug, Clone, Copy)]
struct Ports {
    client: u16,
    peer: u16,
    election: u16,
}

impl Ensemble {
    /// Starts all of them, and waits until they have a leader. A port that somebody else took meanwhile is another try.
    pub async fn start(kind: Kind) -> Result<Self> {
        for _ in 1..port::PORT_ATTEMPTS {
            if let Ok(ensemble) = Self::try_to_start(kind).await {
                return Ok(ensemble);
            }
        }
        Self::try_to_start(kind).await
    }

    async fn try_to_start(kind: Kind) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
        let ports: Vec<_> = (0..MEMBERS).map(|_| Ports::free()).collect();
        let mut members = Vec::new();
        for (number, of_member) in ports.iter().enumerate() {
            let folder = folder.path().join(number.to_string());
            fs::create_dir_all(&folder)?;
            let program = match kind {
                Kind::Etcd => etcd(&folder, number, &ports)?,
                Kind::ZooKeeper => zookeeper(&folder, number, &ports)?,
            };
            members.push(Member {
                client_port: of_member.client,
                process: launcher.spawn(&program).await?,
                program,
            });
        }
        let mut ensemble = Self {
            kind,
            launcher,
            members,
            _folder: folder,
        };
        // One that is missing from the beginning would be one too many when another one is killed.
        for number in 0..MEMBERS {
            ensemble.answers(number).await?;
        }
        ensemble.agrees().await?;
        Ok(ensemble)
    }

    /// A client of all members, as a process of its own would have one.
    pub fn service(&self, session: Duration) -> Result<LockService> {
        let ports = self.members.iter().map(|member| member.client_port);
        Ok(match self.kind {
            Kind::Etcd => {
                let urls: Vec<_> = ports.map(url).collect();
                LockService::new(Arc::new(Etcd::open(&urls)?))
            }
            Kind::ZooKeeper => {
                let servers: Vec<_> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
                LockService::new(Arc::new(ZooKeeper::open(&servers.join(","), session)?))
            }
        })
    }

    /// Waits until those that live have a leader, and says which it is.
    pub async fn agrees(&mut self) -> Result<usize> {
        self.agree(&[0, 1, 2]).await
    }

    /// Waits until the others have a leader.
    pub async fn agrees_without(&mut self, away: usize) -> Result<usize> {
        let others: Vec<_> = (0..MEMBERS).filter(|number| *number != away).collect();
        self.agree(&others).await
    }

    async fn agree(&mut self, who: &[usize]) -> Result<usize> {
        let began = Instant::now();
        loop {
            for number in who {
                if self.leads(*number).await {
                    return Ok(*number);
                }
            }
            ensure!(began.elapsed() < AGREEMENT, "no leader in {AGREEMENT:?}");
            sleep(PAUSE).await;
        }
    }

    /// Sends one a signal.
    pub fn signals(&mut self, number: usize, signal: Signal) -> Result<()> {
        self.members[number].process.signal(signal)
    }

    /// Kills one, as a crash would.
    pub async fn kills(&mut self, number: usize) -> Result<()> {
        self.members[number].process.kill().await
    }

    /// Starts one again, on its data.
    pub async fn starts(&mut self, number: usize) -> Result<()> {
        let member = &mut self.members[number];
        member.process = self.launcher.spawn(&member.program).await?;
        self.answers(number).await
    }

    /// Waits until this one answers for the others.
    async fn answers(&mut self, number: usize) -> Result<()> {
        let began = Instant::now();
        loop {
            let member = &mut self.members[number];
            if let Some(status) = member.process.try_wait()? {
                bail!("member {number} has ended: {status}");
            }
            let asked = is_led(self.kind, member.client_port);
            if matches!(timeout(QUESTION, asked).await, Ok(Ok(true))) {
                return Ok(());
            }
            ensure!(
                began.elapsed() < AGREEMENT,
                "member {number} does not answer in {AGREEMENT:?}"
            );
            sleep(PAUSE).await;
        }
    }

    async fn leads(&mut self, number: usize) -> bool {
        let member = &mut self.members[number];
        if !matches!(member.process.try_wait(), Ok(None)) {
            return false;
        }
        let asked = async {
            match self.kind {
                Kind::Etcd => leads_etcd(member.client_port).await,
                Kind::ZooKeeper => leads_zookeeper(member.client_port).await,
            }
        };
        matches!(timeout(QUESTION, asked).await, Ok(Ok(true)))
    }
}

impl Ports {
    /// None that the system gives away: a member that is dead for a while gets its own again.
    fn free() -> Self {
        let first = free_ports(3);
        Self {
            client: first,
            peer: first + 1,
            election: first + 2,
        }
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn etcd(folder: &Path, number: usize, all: &[Ports]) -> Result<Program> {
    let own = all[number];
    let cluster: Vec<_> = (0..)
        .zip(all)
        .map(|(number, ports)| format!("m{number}={}", url(ports.peer)))
        .collect();
    Ok(Program::new(Known::Etcd.required()?)
        .args(["--name".to_owned(), format!("m{number}")])
        .arg("--data-dir")
        .arg(folder.join("data"))
        .args(["--listen-client-urls", &url(own.client)])
        .args(["--advertise-client-urls", &url(own.client)])
        .args(["--listen-peer-urls", &url(own.peer)])
        .args(["--initial-advertise-peer-urls", &url(own.peer)])
        .args(["--initial-cluster", &cluster.join(",")])
        .args(["--log-level", "warn"])
        .log_to(folder.join("etcd.log")))
}

/// Whether it has a leader, or is it.
async fn is_led(kind: Kind, port: u16) -> Result<bool> {
    match kind {
        Kind::Etcd => {
            let mut client = Client::connect([url(port)], None).await?;
            Ok(client.status().await?.leader() != 0)
        }
        Kind::ZooKeeper => {
            let mode = mode_of_zookeeper(port).await?;
            Ok(["leader", "follower"].contains(&&*mode))
        }
    }
}

/// Whether it leads, and the others have heard of it: only then it answers a read of the whole cluster.
async fn leads_etcd(port: u16) -> Result<bool> {
    let mut client = Client::connect([url(port)], None).await?;
    let status = client.status().await?;
    let own = status.header().map(|header| header.member_id());
    if own != Some(status.leader()) {
        return Ok(false);
    }
    client.get("any", None).await?;
    Ok(true)
}

fn zookeeper(folder: &Path, number: usize, all: &[Ports]) -> Result<Program> {
    let data = folder.join("data");
    fs::create_dir_all(&data)?;
    fs::write(data.join("myid"), format!("{number}\n"))?;
    let servers = (0..).zip(all).map(|(number, ports)| {
        let Ports { peer, election, .. } = ports;
        format!("server.{number}=127.0.0.1:{peer}:{election}\n")
    });
    let settings = format!(
        "tickTime=500\ninitLimit=40\nsyncLimit=20\nmaxSessionTimeout=600000\ndataDir={}\nclientPort={}\n\
         clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n{}",
        data.display(),
        all[number].client,
        servers.collect::<String>()
    );
    let file = folder.join("zoo.cfg");
    fs::write(&file, settings)?;
    let java = found::on_path("java").context("java is not on PATH")?;
    Ok(Program::new(java)
        .args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["-Djava.awt.headless=true", "-cp"])
        .arg(Known::ZooKeeper.required()?)
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(file)
        .log_to(folder.join("zookeeper.log")))
}

async fn leads_zookeeper(port: u16) -> Result<bool> {
    Ok(mode_of_zookeeper(port).await? == "leader")
}

/// What it is: `leader`, `follower`, or nothing yet.
async fn mode_of_zookeeper(port: u16) -> Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"srvr").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    Ok(mode.unwrap_or_default().to_owned())
}
