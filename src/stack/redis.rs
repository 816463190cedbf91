//! A private Redis (or Valkey): in memory only, without a password, on loopback.
//!
//! It keeps nothing: stopped, killed or started again, it has forgotten everything, counters too. Locks must live with
//! that, so it is what we want to see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, anyhow};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::child::{Guarded, Launcher, Program};
use super::found::Known;
use super::port::{self, PORT_ATTEMPTS};
use super::ready::{NotReady, until_ready};

/// How long Redis may take to answer; it holds no data, so it needs a fraction of a second.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running Redis. Dropped, it ends.
#[derive(Debug)]
pub struct RedisServer {
    launcher: Launcher,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    process: Guarded,
}

impl RedisServer {
    /// Starts a Redis on a free port; its log is `redis.log` in `folder`.
    pub async fn start(launcher: &Launcher, folder: &Path) -> anyhow::Result<Self> {
        let program = Known::Redis.required()?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize()?;

        let mut attempt = 1;
        loop {
            let port = port::free().context("no free port for redis-server")?;
            let redis = redis_on(port, &program, &folder);
            match launch(launcher, &redis, port).await? {
                Ok(process) => {
                    return Ok(Self {
                        launcher: launcher.clone(),
                        program,
                        folder,
                        port,
                        process,
                    });
                }
                Err(NotReady::Ended(_)) if attempt < PORT_ATTEMPTS => attempt += 1,
                Err(why) => return Err(failure(&redis, &why)),
            }
        }
    }

    /// Starts it again after it ended or was stopped: the same port, nothing in memory.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        let redis = redis_on(self.port, &self.program, &self.folder);
        self.process = launch(&self.launcher, &redis, self.port)
            .await?
            .map_err(|why| failure(&redis, &why))?;
        Ok(())
    }

    /// Its address, `redis://127.0.0.1:port`.
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process of `redis-server` itself.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Waits until it has ended, for whatever reason.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
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

/// Starts it once; the inner result says whether it came to answer.
async fn launch(
    launcher: &Launcher,
    redis: &Program,
    port: u16,
) -> anyhow::Result<Result<Guarded, NotReady>> {
    let mut process = launcher.spawn(redis).await?;
    let pid = process.pid();
    let answer = until_ready(&mut process, START_DEADLINE, || answers(port, pid)).await;
    Ok(answer.map(|()| process))
}

fn redis_on(port: u16, program: &Path, folder: &Path) -> Program {
    Program::new(program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
        ])
        .arg("--dir")
        .arg(folder)
        .log_to(folder.join("redis.log"))
}

/// Whether the one that answers on this port is the process we started, and not somebody who took the port first.
async fn answers(port: u16, pid: Pid) -> bool {
    server_pid(port)
        .await
        .is_ok_and(|answering| answering == pid.as_raw())
}

async fn server_pid(port: u16) -> anyhow::Result<i32> {
    let mut connection = ::redis::Client::open(url(port))?
        .get_multiplexed_async_connection()
        .await?;
    let () = ::redis::cmd("PING").exec_async(&mut connection).await?;
    let info: String = ::redis::cmd("INFO")
        .arg("server")
        .query_async(&mut connection)
        .await?;
    let pid = info
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"));
    Ok(pid.context("INFO names no process_id")?.trim().parse()?)
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn failure(redis: &Program, why: &NotReady) -> anyhow::Error {
    anyhow!("cannot start {}: {why}{}", redis.name(), redis.hint())
}
