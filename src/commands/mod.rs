//! The command line: what can be asked of the binary, and where it is done.
//!
//! Each flag has its environment variable. What is wrong with them is told in one line, by a `UsageError`, before
//! anything is started.

pub mod address;

pub mod doctor;

pub mod guard;

pub mod health;

pub mod load;
pub mod lock_servers;

pub mod prepare;

pub mod serve;

pub mod stop;

pub mod up;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use tokio::runtime::{Builder, Runtime};
use tracing::Span;

pub use prepare::prepare;

/// Sells seats and moves money on several replicas, with and without locks.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Cli {
    /// How the log is written
    #[arg(
        long,
        global = true,
        env = "DOUBLEBOOK_LOG",
        value_enum,
        default_value = "text"
    )]
    pub log: LogFormat,

    /// What to do; without it, `up`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run replicas, a database and every lock server found on this machine (the default)
    Up(up::UpArgs),
    /// Run one replica
    Serve(serve::ServeArgs),
    /// Drive replicas, side by side, and say how fast and how right they were
    Load(Box<load::LoadArgs>),
    /// Say what is there, what is missing and how to get it
    Doctor(doctor::DoctorArgs),
    /// Ask a replica on this machine whether it can work
    Health(health::HealthArgs),
    /// Run a program that ends with its owner
    #[command(hide = true)]
    Guard(guard::GuardArgs),
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Its name in `DOUBLEBOOK_LOG`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// A wrong setting: one line that names it, and the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
pub struct UsageError {
    line: String,
    code: u8,
}

impl UsageError {
    /// A wrong setting, told by this line; exit code 2, as of clap.
    pub fn new(line: impl Into<String>) -> Self {
        Self::with_code(line, 2)
    }

    /// The same with an exit code of its own.
    pub fn with_code(line: impl Into<String>, code: u8) -> Self {
        Self {
            line: line.into(),
            code,
        }
    }
}

/// How the program exits after this error: as a wrong setting says, 1 for anything else.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<UsageError>();
    ExitCode::from(usage.map_or(1, |usage| usage.code))
}

impl Cli {
    /// Reads the command line and the environment. Asked for help or the version, it prints that and exits.
    pub fn read(
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<(LogFormat, Command), UsageError> {
        let args: Vec<OsString> = args.into_iter().collect();
        let cli = match Self::parse_or_explain(args.clone()) {
            // `doublebook` is `doublebook up`, so its flags are, too.
            Err(error) if has_only_flags(&args) => return Self::read_up(args).map_err(|_| error),
            read => read?,
        };
        if let Some(command) = cli.command {
            return Ok((cli.log, command));
        }
        Self::read_up(args)
    }

    /// Read with the command put in, so that `up` gets its defaults and its environment.
    fn read_up(mut args: Vec<OsString>) -> Result<(LogFormat, Command), UsageError> {
        args.insert(args.len().min(1), "up".into());
        let cli = Self::parse_or_explain(args)?;
        let command = cli
            .command
            .ok_or_else(|| UsageError::new("no command given"))?;
        Ok((cli.log, command))
    }

    fn parse_or_explain(args: impl IntoIterator<Item = OsString>) -> Result<Self, UsageError> {
        let args: Vec<OsString> = args.into_iter().collect();
        // Exit codes of `load` tell of thresholds, so a wrong setting there has one of its own.
        let code = if is_load(&args) { load::USAGE } else { 2 };
        Self::try_parse_from(args).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
            _ => UsageError::with_code(first_paragraph(&error.to_string()), code),
        })
    }
}

/// Whether no command was named: the first word is a flag.
fn has_only_flags(args: &[OsString]) -> bool {
    args.get(1)
        .is_some_and(|first| first.to_string_lossy().starts_with('-'))
}

/// Whether the command is `load`: its first word that is no flag, nor the value of the one that all commands have.
fn is_load(args: &[OsString]) -> bool {
    let mut words = args.iter().skip(1).map(|word| word.to_string_lossy());
    loop {
        match words.next().as_deref() {
            Some("--log") => drop(words.next()),
            Some(flag) if flag.starts_with('-') => {}
            word => return word == Some("load"),
        }
    }
}

/// clap's first paragraph says what is wrong; tips and usage follow.
fn first_paragraph(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.trim().is_empty());
    let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let line = line
        .strip_prefix("error: ")
        .map(str::to_owned)
        .unwrap_or(line);
    format!("{line} (--help tells what there is)")
}

/// Does what was asked.
pub fn run(log: LogFormat, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => {
            let runtime = all_cores()?;
            let ended = runtime.block_on(up::run(args, log));
            runtime.shutdown_timeout(LAST_THREADS);
            ended.map(|()| ExitCode::SUCCESS)
        }
        Command::Serve(args) => {
            let span = tracing::error_span!("serve", replica = args.name);
            let runtime = of_replica(&args, &span)?;
            let _named = span.entered();
            let ended = runtime.block_on(serve::run(args));
            runtime.shutdown_timeout(LAST_THREADS);
            ended.map(|()| ExitCode::SUCCESS)
        }
        Command::Load(args) => threads(load::threads())?.block_on(load::run(*args)),
        Command::Doctor(args) => one_core()?
            .block_on(doctor::run(args))
            .map(|()| ExitCode::SUCCESS),
        Command::Health(args) => one_core()?
            .block_on(health::run(args))
            .map(|()| ExitCode::SUCCESS),
        Command::Guard(args) => one_core()?.block_on(guard::run(args)),
    }
}

/// How long a program that has stopped waits for what blocks a thread: a name that is being looked up, or a file lock that
/// is waited for, must not hold up the end.
const LAST_THREADS: Duration = Duration::from_millis(100);

fn all_cores() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// Each line of a replica's log names it, whichever task writes it: all of its threads are in its span, which costs less
/// than to put each task there. An error's span, or a log of errors only would be without it.
fn of_replica(args: &serve::ServeArgs, span: &Span) -> std::io::Result<Runtime> {
    let mut runtime = match args.threads {
        // For one thread, tokio has a scheduler that never hands work to another one, and costs less.
        Some(1) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if let Some(threads) = args.threads.filter(|threads| *threads > 1) {
        runtime.worker_threads(threads.into());
    }
    let span = span.clone();
    runtime
        .enable_all()
        // Never left: a thread is a replica's for as long as it lives.
        .on_thread_start(move || std::mem::forget(span.clone().entered()))
        .build()
}

fn threads(many: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(many)
        .enable_all()
        .build()
}

fn one_core() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Tells people one thing, on standard output. Nobody listening is no reason to stop.
fn say(line: impl Display) {
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::first_paragraph;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_setting_is_told_in_one_line() {
        let message = "error: invalid value 'x' for '--log <LOG>'\n  [possible values: text, json]\n\nFor more, '--help'\n";
        assert_eq!(
            first_paragraph(message),
            "invalid value 'x' for '--log <LOG>' [possible values: text, json] (--help tells what there is)"
        );
    }
}
