//! `doublebook up` as people meet it: what it says, how it exits, and that nothing is left behind.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use doublebook::stack::port;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// How long everything may take to start, PostgreSQL's first data included, on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(90);

/// How long everything may take to stop when asked: replicas, then servers, each with its own patience.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Three times the promise that nothing outlives a killed `up` by more than 5 s.
const ORPHANED_DEADLINE: Duration = Duration::from_secs(15);

/// What people may have set for other servers, and in the forms in which they set it.
const FOREIGN: [(&str, &str); 4] = [
    ("PGSSLMODE", "require"),
    ("ETCD_NAME", "somebody"),
    ("ETCD_DATA_DIR", "/var/lib/somebody"),
    ("DOUBLEBOOK_NO_FAILPOINTS", "1"),
];

/// The binary, with none of the settings of the shell that runs the tests.
fn doublebook(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doublebook"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("DOUBLEBOOK_")
            || ["DATABASE_URL", "REDIS_URL", "RUST_LOG"].contains(&name.as_str())
        {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn output_of(command: &mut Command) -> Output {
    timeout(START_DEADLINE, command.output())
        .await
        .unwrap()
        .unwrap()
}

/// Two neighbouring ports that nobody else in this test run is given, below those the system hands out itself.
fn two_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let candidate = first + NEXT.fetch_add(2, Ordering::Relaxed);
        if port::check_free(candidate).is_ok() && port::check_free(candidate + 1).is_ok() {
            return candidate;
        }
    }
}

/// Exit code 2, and one line on standard error that names what is wrong.
fn assert_wrong_setting(output: &Output, name: &str) {
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains(name), "{name:?} is not named in: {line}");
    assert!(
        output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[tokio::test]
async fn a_wrong_setting_is_one_line_and_exit_code_2() {
    for (args, name) in [
        (vec!["up", "--replicas", "0"], "--replicas"),
        (vec!["up", "--replicas", "27"], "--replicas"),
        (vec!["up", "--port", "none"], "--port"),
        (vec!["up", "--port", "65535"], "--port 65535"),
        (vec!["up", "--servers", "mongo"], "mongo"),
        (vec!["up", "--servers", "redis,postgres"], "postgres"),
        (
            vec!["up", "--redlock-urls", "redis://a,redis://ana:secret@b"],
            "--redlock-urls",
        ),
        (
            vec!["up", "--etcd-endpoints", "ana:secret@host"],
            "--etcd-endpoints",
        ),
        (
            vec!["up", "--zookeeper-servers", "host"],
            "--zookeeper-servers",
        ),
        (
            vec!["up", "--zookeeper-session-ms", "1"],
            "--zookeeper-session-ms",
        ),
        (
            vec!["up", "--dynamodb-endpoint", "host"],
            "--dynamodb-endpoint",
        ),
        (
            vec!["up", "--database", "mysql://ana:secret@db/shop"],
            "--database",
        ),
        (
            vec!["up", "--database", "postgres://ana:secret@db:port/shop"],
            "--database",
        ),
        (
            vec!["up", "--redis-url", "http://ana:secret@cache"],
            "--redis-url",
        ),
        (vec!["up", "--data-dir", "/dev/null/folder"], "--data-dir"),
        (vec!["up", "--log", "xml"], "--log"),
        (vec!["up", "--no-such-flag"], "--no-such-flag"),
        (vec!["downn"], "downn"),
        (vec!["guard"], "<PROGRAM>"),
        (vec!["guard", "--", "true"], "standard input"),
    ] {
        let output = output_of(&mut doublebook(&args)).await;
        assert_wrong_setting(&output, name);
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("secret"),
            "{args:?} tells a password"
        );
    }
}

#[tokio::test]
async fn a_wrong_variable_is_one_line_and_exit_code_2() {
    for (variable, value, name) in [
        ("DOUBLEBOOK_REPLICAS", "many", "--replicas"),
        ("DOUBLEBOOK_SERVERS", "mongo", "mongo"),
        ("DOUBLEBOOK_LOG", "xml", "--log"),
        ("DATABASE_URL", "mysql://ana:secret@db/shop", "DATABASE_URL"),
        ("REDIS_URL", "http://ana:secret@cache", "REDIS_URL"),
        ("RUST_LOG", "doublebook=loud", "RUST_LOG"),
    ] {
        // Without a subcommand: that is `up` too, and its variables count.
        let output = output_of(doublebook(&[]).env(variable, value)).await;
        assert_wrong_setting(&output, name);
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("secret"),
            "{variable} tells a password"
        );
    }
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let folder = TempDir::new().unwrap();
    let first = two_ports();
    let _taken = TcpListener::bind(("127.0.0.1", first + 1)).unwrap();
    let output = output_of(
        doublebook(&["up", "--port", &first.to_string(), "--data-dir"]).arg(folder.path()),
    )
    .await;
    assert_wrong_setting(&output, &format!("port {}", first + 1));
}

#[tokio::test]
async fn a_data_folder_that_is_taken_is_named() {
    let folder = TempDir::new().unwrap();
    let lock = File::create(folder.path().join("up.lock")).unwrap();
    lock.try_lock().unwrap();
    let output = output_of(doublebook(&["up", "--data-dir"]).arg(folder.path())).await;
    assert_wrong_setting(&output, folder.path().to_str().unwrap());
}

#[tokio::test]
async fn the_doctor_names_each_server_and_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let output = output_of(doublebook(&["doctor", "--data-dir"]).arg(&data)).await;
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    for name in [
        "redis",
        "postgres",
        "etcd",
        "zookeeper",
        "dynamodb",
        "can be created",
        "port 3001",
        "port 3002",
    ] {
        assert!(report.contains(name), "{name} is not in:\n{report}");
    }
    assert!(!data.exists());
}

/// Where `scripts/test` unpacks it, or where a variable says. Nothing of it is run: an empty file will do.
#[tokio::test]
async fn the_doctor_finds_a_dynamodb_local() {
    let home = TempDir::new().unwrap();
    let cached = home.path().join(".cache/doublebook/dynamodb-local");
    let elsewhere = home.path().join("elsewhere");
    for folder in [&cached, &elsewhere] {
        std::fs::create_dir_all(folder).unwrap();
        File::create(folder.join("DynamoDBLocal.jar")).unwrap();
    }
    let doctor = async |named: Option<&Path>| {
        let mut command = doublebook(&["doctor", "--data-dir"]);
        command
            .arg(home.path())
            .env("HOME", home.path())
            .env_remove("XDG_CACHE_HOME");
        if let Some(folder) = named {
            command.env("DOUBLEBOOK_DYNAMODB_LOCAL", folder);
        }
        String::from_utf8(output_of(&mut command).await.stdout).unwrap()
    };
    for (named, found) in [(None, &cached), (Some(elsewhere.as_path()), &elsewhere)] {
        let report = doctor(named).await;
        let line = format!("{}/DynamoDBLocal.jar", found.display());
        assert!(report.contains(&line), "{line} is not in:\n{report}");
    }
}

#[tokio::test]
async fn ctrl_c_stops_everything_and_exits_0() {
    let mut up = Up::start(&["--servers", "redis"]).await;
    assert_eq!(up.processes(" serve --name ").len(), 2);
    assert_eq!(up.processes("redis-server").len(), 1);

    assert!(up.end(Signal::SIGINT).await.success());
    assert_eq!(up.everything(), []);
}

#[tokio::test]
async fn every_lock_server_starts_wherever_and_beside_whatever() {
    let servers = ["--servers", "redis,redlock,etcd,zookeeper,dynamodb"];
    let mut up = Up::start(&servers).await;
    assert_eq!(up.processes("redis-server").len(), 6);
    for server in ["etcd", "zookeeper", "DynamoDBLocal"] {
        assert!(!up.processes(server).is_empty(), "{server}");
    }
    assert!(up.end(Signal::SIGINT).await.success());
    assert_eq!(up.everything(), []);
}

/// As the first process of a container, where nothing else ends it.
#[tokio::test]
async fn a_replica_that_waits_for_its_database_ends_when_it_is_asked_to() {
    let nobody = format!("postgres://ana@127.0.0.1:{}/shop", two_ports());
    let folder = TempDir::new().unwrap();
    let log = File::create(folder.path().join("log")).unwrap();
    let mut replica = doublebook(&["serve", "--listen", "127.0.0.1:0"])
        .env("DATABASE_URL", nobody)
        .stderr(log)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let waits = || fs::read_to_string(folder.path().join("log")).unwrap();
    while !waits().contains("waiting for the database") {
        assert!(start.elapsed() < START_DEADLINE, "{}", waits());
        sleep(Duration::from_millis(20)).await;
    }
    let pid = Pid::from_raw(i32::try_from(replica.id().unwrap()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    let ended = timeout(STOP_DEADLINE, replica.wait()).await.unwrap();
    assert!(ended.unwrap().success(), "{}", waits());
}

#[tokio::test]
async fn sigterm_stops_a_private_postgres_too() {
    let mut up = Up::start(&["--servers", "none", "--database", "postgres"]).await;
    assert_eq!(up.processes("redis-server").len(), 0);

    assert!(up.end(Signal::SIGTERM).await.success());
    assert_eq!(up.everything(), []);
}

#[tokio::test]
async fn nothing_outlives_an_up_that_is_killed() {
    let mut up = Up::start(&["--servers", "redis", "--database", "postgres"]).await;
    // The worst case: a server that cannot even hear its stop signal.
    kill(up.only("redis-server"), Signal::SIGSTOP).unwrap();

    assert!(!up.end(Signal::SIGKILL).await.success());
    let left = up.until_alone().await;
    println!("everything was gone after {left:?}");

    // And the next run on the same folder starts, on the same ports.
    let mut next = up
        .next(&["--servers", "redis", "--database", "postgres"])
        .await;
    assert!(next.end(Signal::SIGINT).await.success());
}

#[tokio::test]
async fn the_next_run_waits_for_the_guards_of_a_killed_one() {
    let mut up = Up::start(&["--servers", "none"]).await;
    assert!(!up.end(Signal::SIGKILL).await.success());
    let mut next = up.next(&["--servers", "none"]).await;
    assert!(next.end(Signal::SIGINT).await.success());
}

#[tokio::test]
async fn what_dies_is_started_again_and_this_is_said() {
    let mut up = Up::start(&["--servers", "redis"]).await;

    let replica = up.replica("B");
    kill(replica, Signal::SIGKILL).unwrap();
    up.says("replica B ended").await;
    up.says("replica B runs again").await;
    assert_ne!(up.replica("B"), replica);

    kill(up.only("redis-server"), Signal::SIGKILL).unwrap();
    up.says("Redis on port … ended").await;
    up.says("Redis on port … runs again").await;

    // A guard that dies takes what it guarded along, or the port would be taken.
    let replica = up.replica("A");
    kill(parent_of(replica), Signal::SIGKILL).unwrap();
    up.says("replica A ended").await;
    up.says("replica A runs again").await;
    assert_ne!(up.replica("A"), replica);

    assert!(up.end(Signal::SIGINT).await.success());
    assert_eq!(up.everything(), []);
}

#[tokio::test]
async fn a_private_postgres_that_crashes_is_started_again() {
    let mut up = Up::start(&["--servers", "none", "--database", "postgres"]).await;
    kill(up.only("bin/postgres -D"), Signal::SIGKILL).unwrap();
    up.says("PostgreSQL ended").await;
    up.says("PostgreSQL runs again").await;
    assert!(up.end(Signal::SIGINT).await.success());
    assert_eq!(up.everything(), []);
}

#[tokio::test]
async fn a_second_up_on_the_same_folder_is_refused() {
    let mut up = Up::start(&["--servers", "none"]).await;
    let output = output_of(doublebook(&["up", "--data-dir"]).arg(&up.data)).await;
    assert_wrong_setting(&output, &format!("process {}", up.process.id().unwrap()));
    assert!(up.end(Signal::SIGINT).await.success());
}

#[tokio::test]
async fn no_command_line_tells_a_password() {
    let mut up = Up::start(&["--servers", "none", "--database", "postgres"]).await;
    let password = fs::read_to_string(up.data.join("postgres/password")).unwrap();
    for process in up.everything() {
        assert!(!process.command_line.contains(&password), "{process:?}");
    }
    assert!(up.end(Signal::SIGINT).await.success());
}

/// A running `up` with a data folder of its own, by which its processes are recognized.
struct Up {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    data: PathBuf,
    port: u16,
    _folder: Option<TempDir>,
}

/// One process of this run.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    folder: PathBuf,
    command_line: String,
}

impl Up {
    async fn start(args: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("Daten für 50% (?)");
        Self::run(args, data, two_ports(), Some(folder)).await
    }

    /// Another run on the same folder and the same ports.
    async fn next(&self, args: &[&str]) -> Self {
        Self::run(args, self.data.clone(), self.port, None).await
    }

    async fn run(args: &[&str], data: PathBuf, port: u16, folder: Option<TempDir>) -> Self {
        let mut command = doublebook(&["up", "--port", &port.to_string()]);
        command
            .args(args)
            .arg("--data-dir")
            .arg(&data)
            .envs(FOREIGN)
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut up = Self {
            process,
            lines,
            data,
            port,
            _folder: folder,
        };
        up.says("press Ctrl-C").await;
        up
    }

    /// Reads on until `up` says this; what stands for `…` may be anything.
    async fn says(&mut self, words: &str) {
        let said = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                println!("up: {line}");
                if words.split(" … ").all(|part| line.contains(part)) {
                    return;
                }
            }
            panic!("`up` ended and did not say {words:?}");
        };
        timeout(START_DEADLINE, said)
            .await
            .unwrap_or_else(|_| panic!("`up` did not say {words:?}"));
    }

    /// Sends it a signal and waits for its end.
    async fn end(&mut self, signal: Signal) -> ExitStatus {
        let pid = i32::try_from(self.process.id().unwrap()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
        timeout(STOP_DEADLINE, self.process.wait())
            .await
            .unwrap()
            .unwrap()
    }

    /// Waits until none of its processes is left, and says how long that took.
    async fn until_alone(&self) -> Duration {
        let start = Instant::now();
        while !self.everything().is_empty() {
            assert!(
                start.elapsed() < ORPHANED_DEADLINE,
                "left behind: {:?}",
                self.everything()
            );
            sleep(Duration::from_millis(20)).await;
        }
        start.elapsed()
    }

    /// All guards, replicas and servers of this run: they name the data folder in their command line or stand in it.
    fn everything(&self) -> Vec<Process> {
        let data = self.data.to_str().unwrap();
        let itself = self.process.id();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let processes = pids.filter(|pid| Some(*pid) != itself).filter_map(process);
        processes
            .filter(|process| {
                process.command_line.contains(data) || process.folder.starts_with(data)
            })
            .collect()
    }

    /// Those of them that run this program or subcommand, not their guards.
    fn processes(&self, word: &str) -> Vec<Process> {
        let mut processes = self.everything();
        processes.retain(|process| {
            process.command_line.contains(word) && !process.command_line.contains(" guard ")
        });
        processes
    }

    fn only(&self, word: &str) -> Pid {
        let processes = self.processes(word);
        assert_eq!(processes.len(), 1, "{processes:?}");
        processes[0].pid
    }

    fn replica(&self, name: &str) -> Pid {
        self.only(&format!("serve --name {name} "))
    }
}

/// A process that runs; one that is dead and not waited for has no folder.
fn process(pid: u32) -> Option<Process> {
    let about = Path::new("/proc").join(pid.to_string());
    let folder = fs::read_link(about.join("cwd")).ok()?;
    let command_line = fs::read(about.join("cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
    Some(Process {
        pid: Pid::from_raw(i32::try_from(pid).unwrap()),
        folder,
        command_line,
    })
}

fn parent_of(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    Pid::from_raw(parent.trim().parse().unwrap())
}
