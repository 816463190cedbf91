//! One replica as a process of its own.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::deadline::{PATIENCE, eventually};

/// The binary under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_doublebook");

/// How many lines of a process's output are shown when a test fails.
const TAIL: usize = 60;

/// A process that can be started, stopped, killed and started again; it dies with its value.
pub struct Process {
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    output: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// The program with these arguments, not yet started. What it prints is added to the file `output`.
    pub fn new(arguments: &[&str], environment: &[(&str, &str)], output: &Path) -> Self {
        Self {
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            output: output.to_owned(),
            child: Mutex::new(None),
        }
    }

    /// Starts it and returns its process id.
    pub fn start(&self) -> u32 {
        let child = Command::new(PROGRAM)
            .args(&self.arguments)
            // Nothing of the caller's surroundings may decide how the program behaves.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_harmless(name)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(self.appending())
            .stderr(self.appending())
            .spawn()
            .expect("the program starts");
        let pid = child.id();
        let before = self.lock().replace(child);
        assert!(before.is_none(), "it was running already");
        pid
    }

    /// The id of the running process.
    pub fn pid(&self) -> u32 {
        self.lock().as_ref().expect("it is running").id()
    }

    /// Fails when the process has ended by itself.
    pub fn assert_alive(&self) {
        let ended = self
            .lock()
            .as_mut()
            .and_then(|child| child.try_wait().expect("a child of ours"));
        if let Some(status) = ended {
            panic!("{:?} ended with {status}:\n{}", self.arguments, self.tail());
        }
    }

    /// Ends it as a crash would, and waits until it is gone.
    pub fn kill(&self) {
        if let Some(mut child) = self.lock().take() {
            // It may have ended by itself.
            let _ = child.kill();
            child.wait().expect("a child of ours");
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("it is running");
    }

    /// Stops it with SIGSTOP, and returns when it stands still: a signal takes its time to reach every thread.
    pub async fn freezes(&self) {
        self.signal(Signal::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.pid());
        eventually("a stopped process", PATIENCE, async || {
            let stat = std::fs::read_to_string(&stat).expect("it is there");
            // The state follows the name, which stands between parentheses.
            let state = stat.rsplit(") ").next().unwrap_or_default();
            if state.starts_with('T') {
                Ok(())
            } else {
                Err(stat)
            }
        })
        .await;
    }

    /// Waits for its end; says with which status and after how long.
    pub async fn ends(&self, limit: Duration) -> (ExitStatus, Duration) {
        let end = eventually("the end of the process", limit, async || {
            self.lock()
                .as_mut()
                .expect("it was started")
                .try_wait()
                .expect("a child of ours")
                .ok_or_else(|| "it is still running".to_owned())
        })
        .await;
        self.lock().take();
        end
    }

    /// All that it printed.
    pub fn output(&self) -> String {
        let bytes = std::fs::read(&self.output).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last lines that it printed.
    pub fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    fn appending(&self) -> File {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.output)
            .expect("a file for the output")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_harmless(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    let decides = [
        "DOUBLEBOOK_",
        "DATABASE_",
        "REDIS_",
        "REDLOCK_",
        "PG",
        "AWS_",
    ];
    !decides.iter().any(|prefix| name.starts_with(prefix))
}
