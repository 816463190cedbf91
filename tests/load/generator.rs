//! A run of `doublebook load`, and what it leaves.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{A, B, PROGRAM, Replica, Scratch, World};

/// A run, before it is started.
pub struct Load {
    command: Command,
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
    pub history: String,
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
        let mut command = Command::new(PROGRAM);
        command.arg("load");
        for target in targets {
            command.args(["--target", target]);
        }
        for (flag, file) in [
            ("--report", "report.html"),
            ("--json", "report.json"),
            ("--history", "history.jsonl"),
        ] {
            command.arg(flag).arg(folder.join(file));
        }
        command.args(flags).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOUBLEBOOK_")) {
            command.env_remove(name);
        }
        Self { command, folder }
    }

    /// Runs it to its end.
    pub async fn ends(self) -> Loaded {
        let Self {
            mut command,
            folder,
        } = self;
        let ended = tokio::task::spawn_blocking(move || command.output());
        let output = ended.await.expect("it did not panic").expect("it starts");
        Loaded::of(&output, &folder)
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
}
