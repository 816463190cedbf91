//! A run of `doublebook load`, and what it leaves.

use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{A, B, PATIENCE, PROGRAM, Replica, Scratch, World, eventually};

/// Enough that buyers and transfers meet, and slow enough for a noisy machine.
pub const CROWD: [&str; 12] = [
    "--workload",
    "mixed",
    "--hot",
    "2",
    "--rate",
    "40",
    "--duration",
    "4s",
    "--warm-up",
    "0s",
    "--think",
    "20ms",
];

/// The files that every run writes.
const FILES: [(&str, &str); 3] = [
    ("--json", "report.json"),
    ("--history", "history.jsonl"),
    ("--report", "report.html"),
];

/// A run, before it is started.
pub struct Load {
    command: Command,
    folder: Scratch,
}

/// A run under way.
pub struct Running {
    child: Option<Child>,
    folder: Scratch,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Loaded {
    pub code: i32,
    pub table: String,
    pub log: String,
    pub report: Value,
    pub page: String,
    history: String,
}

impl Load {
    /// A run against both replicas, with these flags.
    pub fn on(world: &World, flags: &[&str]) -> Self {
        Self::of(world, &[A, B], flags)
    }

    /// A run against some replicas.
    pub fn of(world: &World, replicas: &[Replica], flags: &[&str]) -> Self {
        let targets: Vec<String> = replicas.iter().map(|replica| world.url(*replica)).collect();
        Self::at(&targets, flags)
    }

    /// A run against any addresses.
    pub fn at(targets: &[String], flags: &[&str]) -> Self {
        let folder = Scratch::new("load");
        let mut command = Command::new("sh");
        // So that limits can be set before it.
        command.args(["-c", "exec \"$0\" \"$@\"", PROGRAM, "load"]);
        for target in targets {
            command.args(["--target", target]);
        }
        for (flag, file) in FILES {
            if !flags.contains(&flag) {
                command.arg(flag).arg(folder.join(file));
            }
        }
        command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let settings = std::env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.to_string_lossy().starts_with("DOUBLEBOOK_")) {
            command.env_remove(name);
        }
        Self { command, folder }
    }

    /// The same, which may open so many files only.
    pub fn with_file_descriptors(self, count: u32) -> Self {
        let arguments: Vec<_> = self
            .command
            .get_args()
            .skip(2)
            .map(Into::into)
            .collect::<Vec<std::ffi::OsString>>();
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n {count}; exec \"$0\" \"$@\""))
            .args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            folder: self.folder,
        }
    }

    /// Starts it.
    pub fn starts(mut self) -> Running {
        Running {
            child: Some(self.command.spawn().expect("it starts")),
            folder: self.folder,
        }
    }

    /// Runs it to its end.
    pub async fn ends(self) -> Loaded {
        self.starts().ends().await
    }
}

impl Running {
    /// Waits until its room holds so many records, and tells the room's name.
    pub async fn has_made(&self, world: &World, replica: Replica, count: u64) -> String {
        let (room, _) = eventually("attempts of the run", PATIENCE, async || {
            let page = world.get(replica, "/rooms").await.text;
            let (_, rest) = page.split_once("/rooms/load-").ok_or("no room yet")?;
            let name = rest.split('"').next().unwrap_or_default();
            let audit = world
                .get(replica, &format!("/api/rooms/load-{name}/audit"))
                .await;
            let attempts = audit.json()["attempts"].as_u64();
            if attempts >= Some(count) {
                Ok(format!("load-{name}"))
            } else {
                Err(format!("{attempts:?} attempts"))
            }
        })
        .await;
        room
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().expect("it runs").id();
        kill(
            Pid::from_raw(i32::try_from(pid).expect("a process id")),
            signal,
        )
        .expect("it runs");
    }

    /// Waits for its end.
    pub async fn ends(mut self) -> Loaded {
        let child = self.child.take().expect("it runs");
        let output = tokio::task::spawn_blocking(move || child.wait_with_output());
        let output = output.await.expect("it did not panic").expect("it ends");
        Loaded::of(&output, &self.folder)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Loaded {
    fn of(output: &Output, folder: &Scratch) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let loaded = Self {
            code: output.status.code().expect("it was not killed"),
            table: text(&output.stdout),
            log: text(&output.stderr),
            report: serde_json::from_str(&read("report.json")).unwrap_or(Value::Null),
            page: read("report.html"),
            history: read("history.jsonl"),
        };
        println!("{}{}", loaded.log, loaded.table);
        assert!(!loaded.log.contains("panicked"), "{}", loaded.log);
        loaded
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn exits_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.log, self.table);
        self
    }

    /// Fails if a room of a run is left in this world, in which no other run is under way.
    pub async fn left_no_room(&self, world: &World) {
        let page = world.get(A, "/rooms").await.text;
        assert!(!page.contains("/rooms/load-"), "{page}");
    }

    /// The labels of its sides.
    pub fn labels(&self) -> impl Iterator<Item = String> {
        let sides = self.report["sides"].as_array().into_iter().flatten();
        sides.filter_map(|side| side["label"].as_str().map(str::to_owned))
    }

    /// A side of the report by its label.
    #[track_caller]
    pub fn side(&self, label: &str) -> &Value {
        let sides = self.report["sides"].as_array().expect("sides");
        let side = sides.iter().find(|side| side["label"] == label);
        side.unwrap_or_else(|| panic!("no side {label}: {}", self.table))
    }

    /// A figure of a side.
    #[track_caller]
    pub fn figure(&self, label: &str, name: &str) -> f64 {
        let figure = &self.side(label)["figures"][name];
        figure
            .as_f64()
            .unwrap_or_else(|| panic!("{label}: no {name}: {}", self.table))
    }

    /// The events of a side, from its history.
    pub fn events(&self, side: &str) -> impl Iterator<Item = Value> {
        let mut is_of_side = false;
        let mut events = Vec::new();
        for line in self.history.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            if line["side"].is_string() {
                is_of_side = line["side"] == side;
            } else if is_of_side && line["event"].is_string() {
                events.push(line);
            }
        }
        events.into_iter()
    }
}
