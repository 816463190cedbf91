//! A process that ends with its owner.
//!
//! The owner starts `doublebook guard`, which starts the program. The guard's standard input is a pipe whose other end
//! the owner holds and never writes to: the kernel closes it however the owner ends, and the guard then ends the
//! program. What is promised: no program outlives its owner by more than the guard's patience. What is not: that
//! processes which leave the guard's process group end too (PostgreSQL's do leave it, and watch their parent themselves).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Gid, Pid, Uid};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a guard has to start its program and say which process it is.
const ANNOUNCE_DEADLINE: Duration = Duration::from_secs(10);

/// How long [`Guarded::stop`] waits for the guard: longer than the guard waits for its program.
const STOP_DEADLINE: Duration = Duration::from_secs(8);

/// How long [`Guarded::kill`] waits for the guard to kill its program and go.
const KILL_DEADLINE: Duration = Duration::from_secs(3);

/// Starts programs under a guard.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The doublebook binary, which is the guard.
    pub program: PathBuf,
}

impl Launcher {
    /// A launcher whose guard is this doublebook binary. Tests pass `env!("CARGO_BIN_EXE_doublebook")`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// A launcher whose guard is the running program.
    pub fn of_this_program() -> io::Result<Self> {
        std::env::current_exe().map(Self::new)
    }

    /// Starts `program` under a guard and returns once it runs.
    pub async fn spawn(&self, program: &Program) -> anyhow::Result<Guarded> {
        let mut guard = program
            .under(&self.program)?
            .spawn()
            .with_context(|| format!("cannot start the guard {}", self.program.display()))?;

        // Taken out of the child, because waiting for a tokio child closes its standard input.
        let lifeline = guard.stdin.take();
        let announced = guard
            .stdout
            .take()
            .context("the guard has no standard output")?;
        let group = guard.id().context("the guard ended at once")?;

        let Ok(process) = timeout(ANNOUNCE_DEADLINE, announced_pid(announced)).await else {
            bail!(
                "the guard of {} did not start it within {ANNOUNCE_DEADLINE:?}",
                program.name()
            );
        };
        let process = process
            .with_context(|| format!("cannot start {}{}", program.name(), program.hint()))?;

        Ok(Guarded {
            guard,
            process,
            group: Some(pid(group)?),
            _lifeline: lifeline,
        })
    }
}

/// The signal that asks a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StopSignal {
    /// SIGTERM, which most programs understand as "finish and go".
    #[value(name = "TERM")]
    Term,
    /// SIGINT, PostgreSQL's fast shutdown; at SIGTERM it would wait for its clients to leave.
    #[value(name = "INT")]
    Int,
}

impl StopSignal {
    /// The signal itself.
    pub fn signal(self) -> Signal {
        match self {
            Self::Term => Signal::SIGTERM,
            Self::Int => Signal::SIGINT,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
        }
    }
}

/// A program to run under a guard.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    folder: Option<PathBuf>,
    log: Option<PathBuf>,
    account: Option<(Uid, Gid)>,
    stop_signal: StopSignal,
}

impl Program {
    /// A program without arguments that inherits everything and is stopped with SIGTERM.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            log: None,
            account: None,
            stop_signal: StopSignal::Term,
        }
    }

    /// Adds one argument. Everybody on the machine can read it: secrets go into the environment.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Takes a variable out of the environment.
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Runs in this folder.
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Appends what the program says to this file. Without it, it goes where our standard error goes.
    pub fn log_to(mut self, log: impl Into<PathBuf>) -> Self {
        self.log = Some(log.into());
        self
    }

    /// Runs as this user and group, which only root may ask for.
    pub fn run_as(mut self, uid: Uid, gid: Gid) -> Self {
        self.account = Some((uid, gid));
        self
    }

    /// The signal that asks it to end.
    pub fn stop_signal(mut self, signal: StopSignal) -> Self {
        self.stop_signal = signal;
        self
    }

    /// The program's name, for messages.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// What its log says last, as the end of an error message.
    pub fn hint(&self) -> String {
        match &self.log {
            Some(log) => format!("; its log {} ends with: {}", log.display(), last_line(log)),
            None => String::new(),
        }
    }

    /// The command that runs this program under `guard`, in a process group of its own so that Ctrl-C does not reach it.
    fn under(&self, guard: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(guard);
        command
            .arg("guard")
            .args(["--stop-signal", self.stop_signal.as_str()]);
        if let Some((uid, gid)) = self.account {
            command.args(["--uid", &uid.to_string(), "--gid", &gid.to_string()]);
        }
        command.arg("--").arg(&self.path).args(&self.args);

        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.output()?)
            .process_group(0);
        Ok(command)
    }

    fn output(&self) -> anyhow::Result<Stdio> {
        let Some(log) = &self.log else {
            return Ok(Stdio::inherit());
        };
        let log =
            append_to(log).with_context(|| format!("cannot write the log {}", log.display()))?;
        Ok(log.into())
    }
}

fn append_to(log: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(log)
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map_or_else(|| "(nothing)".to_owned(), |line| line.trim().to_owned())
}

/// A guard says one thing: the number of the process it started.
async fn announced_pid(output: ChildStdout) -> anyhow::Result<Pid> {
    let line = BufReader::new(output).lines().next_line().await?;
    let line = line.context("its guard could not start it")?;
    let number = line
        .trim()
        .parse()
        .context("its guard said something else than a process number")?;
    Ok(Pid::from_raw(number))
}

fn pid(number: u32) -> anyhow::Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(number)?))
}

/// A program that runs under a guard. Dropped, it is ended by the guard, and nobody waits for that.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    process: Pid,
    /// The guard's process group, named by the guard's number; none once it has been swept.
    group: Option<Pid>,
    /// The owner's end of the pipe: held, never written to, closed by drop or by the kernel.
    _lifeline: Option<ChildStdin>,
}

impl Guarded {
    /// The guarded process, not its guard.
    pub fn pid(&self) -> Pid {
        self.process
    }

    /// Waits for the end. The status is the guard's, which passes on the program's exit code (128 + n for signal n).
    ///
    /// A guard that was itself killed leaves its program behind; that one is killed before this returns.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.guard.wait().await?;
        self.sweep();
        Ok(status)
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.guard.try_wait()?;
        if status.is_some() {
            self.sweep();
        }
        Ok(status)
    }

    /// Asks the program to end and waits until it has; one that does not listen is killed.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        if !self.ask(Signal::SIGTERM, STOP_DEADLINE).await? {
            self.kill().await?;
        }
        Ok(())
    }

    /// Kills the program with SIGKILL, as a crash would, and waits until it is gone.
    ///
    /// The guard does it: it alone knows that the number still belongs to its program, and leaves no zombie behind.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if self.ask(Signal::SIGQUIT, KILL_DEADLINE).await? {
            return Ok(());
        }
        // A guard that does not listen, perhaps frozen, is killed with its whole group.
        if let Some(group) = self.group {
            ignore_gone(killpg(group, Signal::SIGKILL))?;
        }
        self.wait().await.context("cannot wait for a guard")?;
        Ok(())
    }

    /// Sends the guard a signal and says whether it ended within `patience`.
    async fn ask(&mut self, signal: Signal, patience: Duration) -> anyhow::Result<bool> {
        if self.try_wait()?.is_some() {
            return Ok(true);
        }
        // The guard is our child and not waited for yet, so its number cannot be somebody else's.
        if let Some(guard) = self.group {
            ignore_gone(kill(guard, signal))?;
        }
        match timeout(patience, self.wait()).await {
            Ok(ended) => ended.map(|_| true).context("cannot wait for a guard"),
            Err(_) => Ok(false),
        }
    }

    /// Sends a signal to the program, not to its guard; one that has ended gets none.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if self.try_wait()?.is_some() {
            bail!("process {} has ended", self.process);
        }
        kill(self.process, signal)
            .with_context(|| format!("cannot send {signal} to process {}", self.process))
    }

    /// Kills what is left of the group. Its number stays taken as long as anybody is in it.
    fn sweep(&mut self) {
        if let Some(group) = self.group.take() {
            // Nobody left is the usual case, and the only other answer is that they are not ours to kill.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A guard that lives sees its pipe close. One that died cannot, and what it guarded is killed here.
        let _ = self.try_wait();
    }
}

/// A process that has just ended needs no signal.
fn ignore_gone(sent: nix::Result<()>) -> nix::Result<()> {
    match sent {
        Err(nix::errno::Errno::ESRCH) => Ok(()),
        sent => sent,
    }
}
