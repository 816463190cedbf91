//! The data folder, which belongs to one `up` at a time.
//!
//! The lock is the kernel's, on an open file: it ends with the process, however that ends. The file holds the number of
//! the process while it runs; a number left in it means that the last run was killed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::commands::UsageError;

/// A data folder that is ours.
pub struct DataFolder {
    path: PathBuf,
    lock: File,
    predecessor_was_killed: bool,
}

impl DataFolder {
    /// Makes the folder if it is new, and locks it.
    pub fn lock(path: &Path) -> anyhow::Result<Self> {
        let unusable = |error| {
            UsageError::new(format!(
                "--data-dir {} cannot be used: {error}",
                path.display()
            ))
        };
        fs::create_dir_all(path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(path.join("up.lock")).map_err(unusable)?;

        let locked = lock.try_lock();
        let mut holder = String::new();
        lock.read_to_string(&mut holder).map_err(unusable)?;
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(&path, holder.trim()).into()),
            Err(TryLockError::Error(error)) => return Err(unusable(error).into()),
        }

        let folder = Self {
            path,
            lock,
            predecessor_was_killed: !holder.is_empty(),
        };
        folder.sign().context("cannot write to the data folder")?;
        Ok(folder)
    }

    /// Its full path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the last run on it was killed, so that its guards may still be ending what it had started.
    pub fn predecessor_was_killed(&self) -> bool {
        self.predecessor_was_killed
    }

    /// Notes that everything has been stopped.
    pub fn leave(self) -> anyhow::Result<()> {
        self.lock
            .set_len(0)
            .context("cannot write to the data folder")
    }

    fn sign(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.path.join("up.lock"))?;
        write!(file, "{}", std::process::id())
    }
}

fn taken(path: &Path, holder: &str) -> UsageError {
    let path = path.display();
    UsageError::new(format!(
        "another `doublebook up` (process {holder}) runs on {path}; stop it or choose another --data-dir"
    ))
}
