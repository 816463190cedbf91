//! The binary: parse, start tracing, dispatch.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use doublebook::commands::{self, Cli, LogFormat, UsageError};
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        let line = format!("{error:#}").replace('\n', " ");
        let _ = writeln!(std::io::stderr(), "doublebook: {line}");
        commands::exit_code(&error)
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let (log, command) = Cli::read(std::env::args_os())?;
    start_tracing(log)?;
    commands::run(log, command)
}

/// The log goes to standard error; `RUST_LOG` says how much of it.
fn start_tracing(format: LogFormat) -> anyhow::Result<()> {
    let level = std::env::var("RUST_LOG").unwrap_or_default();
    // The database library calls a wait for a lock a slow statement; here waiting is what is looked at. ZooKeeper's
    // tells of each session, and a lock that stands alone has one of its own.
    let level = if level.is_empty() {
        "info,sqlx=error,zookeeper_client=error"
    } else {
        &level
    };
    let filter = EnvFilter::try_new(level)
        .map_err(|error| UsageError::new(format!("RUST_LOG is wrong: {error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
