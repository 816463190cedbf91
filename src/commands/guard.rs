//! `doublebook guard`: runs one program and ends it when its owner is gone.
//!
//! Standard input is a pipe held by the owner; its end means that the owner is gone. Standard output gets one line, the
//! number of the process; what the program itself says goes to standard error. The exit code is the program's. SIGTERM and
//! SIGINT ask the program to end, SIGQUIT kills it.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::UsageError;
use crate::stack::child::StopSignal;

/// How long the program may take to end when its owner is gone: what was left behind should not stay.
const PATIENCE_ORPHANED: Duration = Duration::from_secs(2);

/// How long it may take when it is asked to end: requests and data may be in its hands.
const PATIENCE_ASKED: Duration = Duration::from_secs(6);

/// How long a killed process may take to vanish.
const PATIENCE_KILLED: Duration = Duration::from_secs(5);

/// The exit code of a program that a signal ended is this plus the signal's number, as in a shell.
const SIGNAL_EXIT: i32 = 128;

/// Runs a program and ends it when standard input, a pipe held by its owner, is closed.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The signal that asks the program to end
    #[arg(long, value_enum, default_value = "TERM")]
    pub stop_signal: StopSignal,

    /// The user to run it as, by number
    #[arg(long, requires = "gid")]
    pub uid: Option<u32>,

    /// The group to run it as, by number
    #[arg(long, requires = "uid")]
    pub gid: Option<u32>,

    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub program: Vec<OsString>,
}

/// Runs the program to its end, or to ours.
pub async fn run(args: GuardArgs) -> anyhow::Result<ExitCode> {
    let mut lifeline = lifeline()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    // Caught so that it does not end us: the kernel sends it to a group whose owner dies while one of it is stopped.
    let _hangup = signal(SignalKind::hangup())?;

    let mut program = start(&args)?;
    let pid = announce(&program)?;

    tokio::select! {
        status = program.wait() => return Ok(exit_code(status?)),
        _ = quit.recv() => return kill_now(program).await,
        () = closed(&mut lifeline) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // A stopped process does not hear anything else.
    let _ = kill(pid, Signal::SIGCONT);
    let _ = kill(pid, args.stop_signal.signal());

    tokio::select! {
        status = program.wait() => Ok(exit_code(status?)),
        _ = quit.recv() => kill_now(program).await,
        () = patience(&mut lifeline) => kill_now(program).await,
    }
}

async fn kill_now(mut program: Child) -> anyhow::Result<ExitCode> {
    program.start_kill().context("cannot kill the program")?;
    let status = timeout(PATIENCE_KILLED, program.wait()).await;
    Ok(exit_code(
        status.context("the program did not end when killed")??,
    ))
}

/// Our standard input, which must be a pipe: only a pipe ends with its owner.
fn lifeline() -> anyhow::Result<pipe::Receiver> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    pipe::Receiver::from_owned_fd(stdin).map_err(|_| {
        UsageError::new("the standard input of `guard` must be a pipe held by its owner").into()
    })
}

fn start(args: &GuardArgs) -> anyhow::Result<Child> {
    let (program, arguments) = args.program.split_first().context("no program given")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .stderr(Stdio::inherit());
    if let (Some(uid), Some(gid)) = (args.uid, args.gid) {
        command.uid(uid).gid(gid);
    }
    command
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Tells the owner which process it is. An owner who is gone already is noticed by the lifeline.
fn announce(program: &Child) -> anyhow::Result<Pid> {
    let pid = program.id().context("the program ended at once")?;
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{pid}").and_then(|()| stdout.flush());
    Ok(Pid::from_raw(i32::try_from(pid)?))
}

/// Returns when the owner is gone. Whatever it writes is ignored.
async fn closed(lifeline: &mut pipe::Receiver) {
    let mut ignored = [0; 64];
    while lifeline.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

/// Returns when the program has had its time; an owner who goes meanwhile makes it shorter.
async fn patience(lifeline: &mut pipe::Receiver) {
    let orphaned = async {
        closed(lifeline).await;
        sleep(PATIENCE_ORPHANED).await;
    };
    tokio::select! {
        () = orphaned => {}
        () = sleep(PATIENCE_ASKED) => {}
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;

    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| SIGNAL_EXIT + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}
