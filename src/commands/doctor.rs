//! `doublebook doctor`: what is there, what is missing and how to get it.
//!
//! It looks and changes nothing. What it finds wrong is no failure of its own: the exit code is 0.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use nix::unistd::{AccessFlags, access};
use tokio::process::Command;
use tokio::time::timeout;

use super::say;
use crate::stack::found::{self, Known};
use crate::stack::port;

/// How long a program may take to tell its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// How many ports are looked at: those of `up` without flags.
const REPLICAS: u16 = 2;

/// Says what is there, what is missing and how to get it.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The port of replica A
    #[arg(long, env = "DOUBLEBOOK_PORT", default_value_t = 3001, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,

    /// The folder that `up` would use
    #[arg(
        long,
        env = "DOUBLEBOOK_DATA_DIR",
        default_value = ".doublebook",
        value_name = "FOLDER"
    )]
    pub data_dir: PathBuf,
}

/// Prints the report, a line for each thing.
pub async fn run(args: DoctorArgs) -> anyhow::Result<()> {
    for server in found::ALL {
        say(format!(
            "{:<10} {}",
            server.name(),
            server_line(server).await
        ));
    }
    say(format!("{:<10} {}", "data", folder_line(&args.data_dir)));
    for port in (args.port..=u16::MAX).take(usize::from(REPLICAS)) {
        say(format!(
            "{:<10} {}",
            format!("port {port}"),
            port_line(port)
        ));
    }
    Ok(())
}

async fn server_line(server: Known) -> String {
    let later = match server.missing_feature() {
        Some(feature) => format!(" (not compiled in: build with --features {feature})"),
        None => String::new(),
    };
    match server.find() {
        Some(program) => format!(
            "{}{}{later}",
            program.display(),
            version(server, &program).await
        ),
        None => format!(
            "missing: {} brings {}{later}",
            server.package(),
            server.program()
        ),
    }
}

/// What the program says about its version, the first line of it.
async fn version(server: Known, program: &Path) -> String {
    let Some(flag) = version_flag(server) else {
        return String::new();
    };
    let mut command = Command::new(program);
    command.arg(flag).stdin(Stdio::null()).kill_on_drop(true);
    let Ok(Ok(output)) = timeout(VERSION_DEADLINE, command.output()).await else {
        return ", which does not tell its version".to_owned();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .next()
        .map(|line| format!(", {}", line.trim()))
        .unwrap_or_default()
}

fn version_flag(server: Known) -> Option<&'static str> {
    match server {
        Known::Redis | Known::Redlock | Known::Postgres | Known::Etcd => Some("--version"),
        // Java archives do not tell it cheaply.
        Known::ZooKeeper | Known::DynamoDb => None,
    }
}

fn folder_line(folder: &Path) -> String {
    let there = folder.exists();
    let asked = if there { folder } else { parent(folder) };
    match access(asked, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if there => format!("{} is writable", folder.display()),
        Ok(()) => format!("{} can be created", folder.display()),
        Err(error) => format!(
            "{} is not writable ({error}); choose another --data-dir",
            asked.display()
        ),
    }
}

/// The nearest folder above it that is there.
fn parent(folder: &Path) -> &Path {
    let above = folder.ancestors().skip(1).find(|above| above.exists());
    above.unwrap_or(Path::new("."))
}

fn port_line(port: u16) -> String {
    match port::check_free(port) {
        Ok(()) => "free".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            "in use; choose others with --port".to_owned()
        }
        Err(error) => format!("cannot be used ({error}); choose others with --port"),
    }
}
