//! The whole program, started with its default command.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use super::answer::Answer;
use super::deadline::{PATIENCE, eventually};
use super::ports::free_ports;
use super::process::Process;
use super::servers::Folder;
use super::world::client;

/// `doublebook up` on a data folder of its own.
pub struct Up {
    process: Process,
    port: u16,
    client: Client,
    folder: Folder,
}

impl Up {
    /// Prepares `up` with these servers on a new data folder.
    pub fn with_servers(servers: &str, database: &str) -> Self {
        let folder = Folder::new("up");
        let port = free_ports(2);
        let data = folder.join("data");
        let arguments = [
            "up",
            "--port",
            &port.to_string(),
            "--data-dir",
            data.to_str().expect("a readable path"),
            "--servers",
            servers,
            "--database",
            database,
        ];
        let process = Process::new(&arguments, &[], &folder.join("up.log"));
        let client = client();
        Self {
            process,
            port,
            client,
            folder,
        }
    }

    /// Starts it and waits until both replicas are ready.
    pub async fn starts(&self) {
        let pid = self.process.start();
        self.folder.ends(pid);
        for port in [self.port, self.port + 1] {
            eventually("a ready replica of `up`", PATIENCE, async || {
                self.process.assert_alive();
                let url = format!("http://127.0.0.1:{port}/readyz");
                match self.client.get(url).send().await {
                    Ok(answer) if answer.status() == 200 => Ok(()),
                    other => Err(format!("{other:?}\n{}", self.process.tail())),
                }
            })
            .await;
        }
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// A GET below `/api` of the first replica.
    pub async fn get(&self, path: &str) -> Value {
        let url = format!("http://127.0.0.1:{}/api{path}", self.port);
        Answer::to(self.client.get(url))
            .await
            .expect("an answer")
            .json()
    }

    /// Books in the room `main` at one of the replicas, 0 or 1.
    pub async fn books(&self, replica: u16, buyer: &str, seat: &str) -> Answer {
        let url = format!(
            "http://127.0.0.1:{}/api/rooms/main/bookings",
            self.port + replica
        );
        let body = json!({"seat": seat, "buyer": buyer});
        Answer::to(self.client.post(url).json(&body))
            .await
            .expect("an answer")
    }

    /// All processes below `up`: guards, replicas, servers, and theirs.
    pub fn descendants(&self) -> Vec<Descendant> {
        let processes = processes();
        let mut found = Vec::new();
        let mut parents = vec![self.process.pid()];
        while let Some(parent) = parents.pop() {
            for (&pid, process) in processes.iter().filter(|(_, one)| one.parent == parent) {
                parents.push(pid);
                found.push(Descendant {
                    pid,
                    started: process.started,
                    command: process.command.clone(),
                });
            }
        }
        found
    }

    /// Waits until none of these processes is left.
    pub async fn leaves_nothing_of(&self, before: &[Descendant], limit: Duration) -> Duration {
        let ((), took) = eventually("the end of all processes of `up`", limit, async || {
            let now = processes();
            let left: Vec<&Descendant> = before
                .iter()
                .filter(|old| {
                    // The same id with another start is another process.
                    now.get(&old.pid)
                        .is_some_and(|process| process.started == old.started && !process.dead)
                })
                .collect();
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:?}"))
            }
        })
        .await;
        took
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- the last lines of `up`:\n{}", self.process.tail());
        }
    }
}

/// A process that once was below `up`.
#[derive(Debug)]
pub struct Descendant {
    pub pid: u32,
    pub command: String,
    started: u64,
}

struct OfTheSystem {
    parent: u32,
    started: u64,
    dead: bool,
    command: String,
}

/// All processes of the system by their ids, from `/proc/<pid>/stat`.
fn processes() -> HashMap<u32, OfTheSystem> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name stands in parentheses and may hold anything, also parentheses.
            let (name, rest) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let process = OfTheSystem {
                parent: fields.get(1)?.parse().ok()?,
                started: fields.get(19)?.parse().ok()?,
                dead: matches!(*fields.first()?, "Z" | "X"),
                command: name.split_once('(')?.1.to_owned(),
            };
            Some((pid, process))
        })
        .collect()
}
