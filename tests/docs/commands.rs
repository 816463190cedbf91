//! The commands of the README do what it says, exactly as they are written. Only the ports and the data folder are
//! others, through the environment, so that they can run beside anything.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use doublebook::stack::{Launcher, PostgresServer, RedisServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::{read, top};

/// A release build from nothing, on a slow machine.
const START_LIMIT: Duration = Duration::from_secs(1200);

/// What a block of the README does in a test.
enum Does {
    /// Starts replicas.
    Runs,
    /// Starts replicas that have every lock.
    RunsWithAllLocks,
    /// Ends by itself.
    Ends,
    /// Is what runs this test.
    IsThisTest,
    /// Asks the replicas that the first command of the README has started.
    Asks,
    /// Uses servers at hosts that are examples: run with the URLs of real ones.
    NeedsServers,
}

fn does(command: &str) -> Does {
    match command {
        "cargo run --release" | "cargo run --release -- up --database postgres" => Does::Runs,
        "cargo run --release --features full" => Does::RunsWithAllLocks,
        "cargo run --release -- doctor" => Does::Ends,
        "scripts/test" => Does::IsThisTest,
        _ if command.starts_with("cargo run --release -- load ") => Does::Asks,
        _ if command.starts_with("curl ") => Does::Ends,
        _ if command.starts_with("DATABASE_URL=") => Does::NeedsServers,
        other => panic!("the README has a command that no test runs: {other}"),
    }
}

/// The indented lines of the README.
fn commands() -> Vec<String> {
    let text = read("README.md");
    let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
    indented.map(str::to_owned).collect()
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    let all = commands();
    assert!(all.len() >= 7, "{all:?}");
    let curls: Vec<_> = all
        .iter()
        .filter(|command| command.starts_with("curl "))
        .collect();
    let asks = all
        .iter()
        .filter(|command| matches!(does(command), Does::Asks));
    let asks: Vec<_> = asks.collect();
    for command in &all {
        match does(command) {
            Does::Runs => {
                let running = Running::start(command);
                sells_twice(&running, &curls);
                for ask in &asks {
                    running.is_asked(ask);
                }
                running.ends_with_ctrl_c();
            }
            Does::RunsWithAllLocks => {
                let running = Running::start(command);
                let locks = running.curl("curl http://127.0.0.1:3001/api/locks");
                for lock in locks.as_array().expect("a list") {
                    assert_eq!(lock["available"], true, "{lock}");
                }
                sells_twice(&running, &curls);
                running.ends_with_ctrl_c();
            }
            Does::Ends if command.starts_with("cargo") => {
                let folder = tempfile::tempdir().expect("a folder");
                let status = shell(command, free_port(), folder.path())
                    .status()
                    .expect("it runs");
                assert!(status.success(), "{command}");
            }
            Does::NeedsServers => with_servers(|database, redis| {
                let command = command
                    .replace("postgres://user:password@host/name", database)
                    .replace("redis://host", redis);
                let running = Running::start(&format!("env {command}"));
                sells_twice(&running, &curls);
                running.ends_with_ctrl_c();
            }),
            Does::Ends | Does::Asks | Does::IsThisTest => {}
        }
    }
}

/// Runs a test with the URLs of a PostgreSQL and a Redis of its own.
fn with_servers(test: impl FnOnce(&str, &str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
    let start = async {
        let postgres = PostgresServer::start(&launcher, folder.path())
            .await
            .expect("PostgreSQL starts");
        let redis = RedisServer::start(&launcher, folder.path())
            .await
            .expect("Redis starts");
        (postgres, redis)
    };
    let (mut postgres, mut redis) = runtime.block_on(start);
    test(&postgres.url(), &redis.url());
    let stop = async {
        postgres.stop().await.expect("PostgreSQL stops");
        redis.stop().await.expect("Redis stops");
    };
    runtime.block_on(stop);
}

/// The two requests of the README: locking off, then a race in which the seat is sold twice.
fn sells_twice(running: &Running, curls: &[&String]) {
    let [switch, race] = curls else {
        panic!("the README has two requests: {curls:?}")
    };
    // Time enough for both buyers to read before one has written, on any machine.
    running.thinks(4000);
    let room = running.curl(switch);
    assert_eq!(room["switches"]["locking"], false, "{room}");
    let raced = running.curl(race);
    assert_eq!(raced["audit"]["sentence"], "1 seat sold twice", "{raced}");
    running.thinks(100);
}

/// Two in a row: the second one is for replica B. Below those that the system gives away, since minutes can pass until
/// they are listened at.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = (std::process::id() % 100) as u16 * 20;
    loop {
        let first = 18_000 + offset + NEXT.fetch_add(2, Ordering::Relaxed);
        if (first..first + 2).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}

fn shell(command: &str, port: u16, folder: &Path) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("exec {command}")])
        .current_dir(top())
        .env("DOUBLEBOOK_PORT", port.to_string())
        .env("DOUBLEBOOK_DATA_DIR", folder)
        .stdin(Stdio::null());
    shell
}

/// `doublebook up`, as the README starts it.
struct Running {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(command: &str) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
        let mut child = shell(command, port, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let output = child.stdout.take().expect("its output");
        let mut running = Self {
            child,
            port,
            _folder: folder,
        };
        running.wait_for(output, "press Ctrl-C to stop");
        running
    }

    /// Reads on in the background, so that a full pipe stops nobody.
    fn wait_for(&mut self, output: std::process::ChildStdout, line: &'static str) {
        let (seen, sees) = mpsc::channel();
        std::thread::spawn(move || {
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                if read.contains(line) {
                    // Nobody listens any more only if the test has failed.
                    let _ = seen.send(());
                }
            }
        });
        sees.recv_timeout(START_LIMIT)
            .unwrap_or_else(|_| panic!("it did not say {line:?}"));
    }

    fn curl(&self, command: &str) -> Value {
        let command = command.replace("127.0.0.1:3001", &format!("127.0.0.1:{}", self.port));
        let output = Command::new("bash")
            .args(["-c", &command])
            .output()
            .expect("curl runs");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{command}: {error}: {output:?}"))
    }

    fn thinks(&self, milliseconds: u32) {
        let set = format!(
            "curl -X PATCH http://127.0.0.1:3001/api/rooms/main/switches -H 'content-type: application/json' \
             -d '{{\"think_ms\": {milliseconds}}}'"
        );
        let room = self.curl(&set);
        assert_eq!(room["switches"]["think_ms"], milliseconds, "{room}");
    }

    /// A run of the load generator ends well and says what the README says.
    fn is_asked(&self, command: &str) {
        let command = command
            .replace("127.0.0.1:3001", &format!("127.0.0.1:{}", self.port))
            .replace("127.0.0.1:3002", &format!("127.0.0.1:{}", self.port + 1));
        let folder = tempfile::tempdir().expect("a folder");
        let output = shell(&command, self.port, folder.path())
            .output()
            .expect("it runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}: {output:?}");
        for word in ["throughput", "goodput", "locking=off", "locking=on"] {
            assert!(table.contains(word), "{command}: {table}");
        }
    }

    fn ends_with_ctrl_c(mut self) {
        self.signal(Signal::SIGINT);
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
