//! One replica as a child process, ready when it says so itself.

use std::io;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::stack::Launcher;
use crate::stack::child::{Guarded, Program};
use crate::stack::port;
use crate::stack::ready::{NotReady, until_ready};

/// How long a replica may take until its database is reachable and it answers.
const READY_DEADLINE: Duration = Duration::from_secs(30);

/// The setting of a replica that says how many threads run it.
const THREADS: &str = "DOUBLEBOOK_THREADS";

/// A replica that answered once; it may have died since.
pub struct Replica {
    launcher: Launcher,
    program: Program,
    name: char,
    port: u16,
    process: Guarded,
}

/// The program of one of `replicas`. Addresses with passwords in them belong into its environment.
pub fn program(
    launcher: &Launcher,
    name: char,
    port: u16,
    folder: &Path,
    replicas: usize,
) -> Program {
    let program = Program::new(&launcher.program)
        .args([
            "serve",
            "--name",
            &name.to_string(),
            "--listen",
            &format!("127.0.0.1:{port}"),
        ])
        .arg("--data-dir")
        .arg(folder);
    match std::env::var_os(THREADS) {
        Some(_) => program,
        None => program.env(THREADS, threads_of_each(replicas).to_string()),
    }
}

/// Replicas on one machine share its processors: threads that only take them from each other cost switches.
fn threads_of_each(replicas: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    (processors / replicas.max(1)).max(1)
}

impl Replica {
    /// Starts it and returns when it is ready.
    pub async fn start(
        launcher: Launcher,
        program: Program,
        name: char,
        port: u16,
    ) -> anyhow::Result<Self> {
        let process = launch(&launcher, &program, name, port).await?;
        Ok(Self {
            launcher,
            program,
            name,
            port,
            process,
        })
    }

    /// Starts it again after it ended.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process = launch(&self.launcher, &self.program, self.name, self.port).await?;
        Ok(())
    }

    /// Its letter.
    pub fn name(&self) -> char {
        self.name
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// Waits until it has ended, for whatever reason.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Asks it to finish its requests and waits until it has ended.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.process.stop().await
    }
}

async fn launch(
    launcher: &Launcher,
    program: &Program,
    name: char,
    port: u16,
) -> anyhow::Result<Guarded> {
    // A proxy of the environment has no business between us and our children.
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .context("cannot make an HTTP client")?;
    let question = format!("{}/readyz", url(port));
    let mut process = launcher.spawn(program).await?;

    let pid = process.pid();
    // Somebody else's replica may have taken the port, and is ready.
    let answers = async || port::is_listened_on_by(port, pid) && is_ready(&client, &question).await;
    match until_ready(&mut process, READY_DEADLINE, answers).await {
        Ok(()) => Ok(process),
        Err(why) => {
            // It must be gone before another one can have its port.
            process.stop().await?;
            Err(failure(name, &question, &why))
        }
    }
}

async fn is_ready(client: &reqwest::Client, question: &str) -> bool {
    client
        .get(question)
        .send()
        .await
        .is_ok_and(|answer| answer.status() == reqwest::StatusCode::OK)
}

fn failure(name: char, question: &str, why: &NotReady) -> anyhow::Error {
    match why {
        NotReady::Ended(_) => anyhow!("replica {name}: {why}; its own message above says why"),
        NotReady::Silent(_) | NotReady::Unknown(_) => {
            anyhow!("replica {name}: {why}; see its messages above, and ask {question} yourself")
        }
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
