//! A private lock server: one program on one port, with a folder of its own.
//!
//! What all of them share is written once: a free port, the start, the wait for an answer, stopping, killing,
//! freezing and starting again on the same port and data. What differs is a [`Kind`].

use std::fs;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::child::{Guarded, Launcher, Program};
use super::found::Known;
use super::port::{self, PORT_ATTEMPTS};
use super::ready::{NotReady, until_ready};

/// What makes one lock server different from the others.
#[async_trait]
pub trait Kind: Send + Sync + 'static {
    /// Which one it is.
    const KNOWN: Known;

    /// What people call it.
    const TITLE: &'static str;

    /// How long it may take until it answers.
    const START_DEADLINE: Duration;

    /// Writes what it needs into its folder, and says how it is started.
    fn program(program: &Path, place: &Place) -> anyhow::Result<Program>;

    /// Whether the server at this place answers, and is this process: somebody else may have taken the port first.
    async fn answers(place: &Place, pid: Pid) -> bool;

    /// Its address, as the replicas are told it.
    fn url(port: u16) -> String;
}

/// Where a server is: these stay the same when it is started again.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its data and its log.
    pub folder: PathBuf,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// A second one, for a server that insists on a port for its peers.
    pub peer_port: u16,
}

/// A running server. Dropped, it ends; what it keeps on disk stays.
#[derive(Debug)]
pub struct Server<K> {
    launcher: Launcher,
    program: PathBuf,
    place: Place,
    process: Guarded,
    kind: PhantomData<K>,
}

impl<K: Kind> Server<K> {
    /// Starts one on a free port, with its data and its log in `folder`.
    pub async fn start(launcher: &Launcher, folder: &Path) -> anyhow::Result<Self> {
        let program = K::KNOWN.required()?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize()?;

        let mut attempt = 1;
        loop {
            let place = Place {
                folder: folder.clone(),
                port: free_port::<K>()?,
                peer_port: free_port::<K>()?,
            };
            let described = K::program(&program, &place)?;
            match launch::<K>(launcher, &described, &place).await? {
                Ok(process) => {
                    return Ok(Self {
                        launcher: launcher.clone(),
                        program,
                        place,
                        process,
                        kind: PhantomData,
                    });
                }
                Err(NotReady::Ended(_)) if attempt < PORT_ATTEMPTS => attempt += 1,
                Err(why) => return Err(failure(&described, &why)),
            }
        }
    }

    /// Starts it again after it ended or was stopped: the same port, and the data that it has kept.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        let described = K::program(&self.program, &self.place)?;
        self.process = launch::<K>(&self.launcher, &described, &self.place)
            .await?
            .map_err(|why| failure(&described, &why))?;
        Ok(())
    }

    /// Its address.
    pub fn url(&self) -> String {
        K::url(self.place.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.place.port
    }

    /// The process of the server itself.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Waits until it has ended, for whatever reason.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Asks it to end and waits until it has.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.process.stop().await
    }

    /// Kills it with SIGKILL, as a crash would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    /// Freezes it with SIGSTOP: connections stay open, and nothing answers.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::SIGSTOP)
    }

    /// Lets a frozen one go on.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.process.signal(Signal::SIGCONT)
    }
}

fn free_port<K: Kind>() -> anyhow::Result<u16> {
    port::free().with_context(|| format!("no free port for {}", K::TITLE))
}

/// Starts it once; the inner result says whether it came to answer.
async fn launch<K: Kind>(
    launcher: &Launcher,
    described: &Program,
    place: &Place,
) -> anyhow::Result<Result<Guarded, NotReady>> {
    let mut process = launcher.spawn(described).await?;
    let pid = process.pid();
    let answer = until_ready(&mut process, K::START_DEADLINE, || K::answers(place, pid)).await;
    Ok(answer.map(|()| process))
}

fn failure(described: &Program, why: &NotReady) -> anyhow::Error {
    anyhow!(
        "cannot start {}: {why}{}",
        described.name(),
        described.hint()
    )
}
