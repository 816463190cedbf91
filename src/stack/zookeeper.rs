//! A private ZooKeeper: an ensemble of one, on loopback, its data kept from run to run.
//!
//! It runs as a plain Java process, without the scripts of its package, so that it can be stopped and killed like any
//! other server here.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::child::Program;
use super::found::{self, Known};
use super::port;
use super::server::{Kind, Place, Server};

/// A running ZooKeeper.
pub type ZooKeeperServer = Server<ZooKeeper>;

/// ZooKeeper, as a kind of server.
#[derive(Debug)]
pub struct ZooKeeper;

/// The server's main class. (Apache ZooKeeper Administrator's Guide.)
const MAIN_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// What its log is written with; Debian's `zookeeper` brings both. Without them it runs, and says nothing.
const LOGGING: &str = "/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar";

/// Few threads, little memory and a quick start, for a server with a handful of clients.
const LIGHT: [&str; 3] = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// In its folder.
const SETTINGS: &str = "zoo.cfg";

/// In its folder.
const DATA: &str = "data";

/// Its unit of time, in ms: a session lasts at least two of them. The default, 2000, would make a lab wait.
const TICK_MS: u32 = 500;

/// The longest session that it grants, in ms.
const LONGEST_SESSION_MS: u32 = 600_000;

#[async_trait]
impl Kind for ZooKeeper {
    const KNOWN: Known = Known::ZooKeeper;
    const TITLE: &'static str = "ZooKeeper";
    /// A Java machine starts slowly on a slow laptop.
    const START_DEADLINE: Duration = Duration::from_secs(60);

    fn program(program: &Path, place: &Place) -> anyhow::Result<Program> {
        let home = place.folder.join("zookeeper");
        let (settings, log) = (home.join(SETTINGS), home.join("log4j.properties"));
        let data = home.join(DATA);
        fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
        fs::write(&settings, in_words(place.port))
            .with_context(|| format!("cannot write {}", settings.display()))?;
        fs::write(&log, LOG_SETTINGS).with_context(|| format!("cannot write {}", log.display()))?;
        let java = found::on_path("java").context("java is not on PATH")?;
        // Its own folder, where the settings of its log are, and the programs.
        let class_path = format!(".:{}:{LOGGING}", program.display());
        Ok(Program::new(java)
            .args(LIGHT)
            .args(["-Djava.awt.headless=true", "-cp"])
            .arg(class_path)
            .arg(MAIN_CLASS)
            .arg(SETTINGS)
            .in_folder(home)
            .log_to(place.folder.join("zookeeper.log")))
    }

    async fn answers(place: &Place, pid: Pid) -> bool {
        port::is_listened_on_by(place.port, pid) && is_serving(place.port).await.unwrap_or(false)
    }

    fn url(port: u16) -> String {
        format!("127.0.0.1:{port}")
    }
}

/// What goes into its settings. It reads them as ISO 8859-1, so they name no folder that people have chosen.
fn in_words(port: u16) -> String {
    format!(
        "tickTime={TICK_MS}\n\
         maxSessionTimeout={LONGEST_SESSION_MS}\n\
         dataDir={DATA}\n\
         clientPort={port}\n\
         clientPortAddress=127.0.0.1\n\
         maxClientCnxns=0\n\
         admin.enableServer=false\n\
         4lw.commands.whitelist=isro,srvr\n"
    )
}

/// Warnings only, and on the standard output, which is its log file.
const LOG_SETTINGS: &str = "\
log4j.rootLogger=WARN, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} %-5p %m%n
";

/// Asks whether it reads and writes. ("Are you ok?" it affirms as soon as it listens, before it serves anybody.)
async fn is_serving(port: u16) -> std::io::Result<bool> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"isro").await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    Ok(answer == b"rw")
}
