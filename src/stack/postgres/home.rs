//! Where a private PostgreSQL's data stands, whose it is, and the password to it.
//!
//! A home holds `data` (PostgreSQL's own), `password`, and during the first start `data.unfinished`. It belongs to the
//! user the server runs as and is closed to everybody else.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use nix::unistd::{Gid, Uid, User};

use crate::stack::child::Program;

/// Where the data of a root whose folder PostgreSQL's user cannot reach stands.
const ELSEWHERE: &str = "/var/tmp";

/// The ordinary users a root lends to PostgreSQL, best first.
const ORDINARY_USERS: [&str; 2] = ["postgres", "nobody"];

/// The folder of one PostgreSQL.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    log: PathBuf,
    password: String,
    /// Whom the server runs as; none where we are an ordinary user ourselves.
    account: Option<Account>,
    elsewhere: bool,
}

#[derive(Debug, Clone, Copy)]
struct Account {
    uid: Uid,
    gid: Gid,
}

impl Home {
    /// Finds or makes the home of the PostgreSQL whose data folder is `folder`.
    pub fn prepare(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let account = Account::to_run_as()?;
        let elsewhere = account.is_some_and(|account| !account.can_reach(&folder));
        let path = if elsewhere {
            place_elsewhere(&folder)
        } else {
            folder.join("postgres")
        };

        make_private(&path, account)
            .with_context(|| format!("cannot prepare {}", path.display()))?;
        let password = password(&path.join("password"), account)
            .context("cannot prepare PostgreSQL's password")?;
        Ok(Self {
            path,
            log: folder.join("postgres.log"),
            password,
            account,
            elsewhere,
        })
    }

    /// PostgreSQL's data.
    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Whether the data has been made.
    pub fn has_data(&self) -> bool {
        self.data().exists()
    }

    /// Where the data is made; what a first start that was killed left there is removed.
    pub fn clear_unfinished(&self) -> anyhow::Result<PathBuf> {
        let unfinished = self.unfinished();
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", unfinished.display()))
            }
            _ => Ok(unfinished),
        }
    }

    /// Moves the data that has been made to its place.
    pub fn finish_data(&self) -> anyhow::Result<()> {
        let data = self.data();
        fs::rename(self.unfinished(), &data)
            .with_context(|| format!("cannot move the new data to {}", data.display()))
    }

    /// The superuser's password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The file that holds the password.
    pub fn password_file(&self) -> PathBuf {
        self.path.join("password")
    }

    /// The home, if it is not below the folder that was asked for.
    pub fn elsewhere(&self) -> Option<&Path> {
        self.elsewhere.then_some(self.path.as_path())
    }

    /// One of PostgreSQL's programs, run here and as the right user.
    pub fn program(&self, path: PathBuf) -> Program {
        // PostgreSQL's programs want to know where they are, and our own folder may be closed to their user.
        let program = Program::new(path)
            .in_folder(&self.path)
            .log_to(&self.log)
            .env("LC_ALL", "C");
        match self.account {
            Some(account) => program.run_as(account.uid, account.gid),
            None => program,
        }
    }

    /// Removes the `postmaster.pid` of a killed run if its number now belongs to somebody else.
    ///
    /// If nobody has the number, PostgreSQL sees that itself, and uses the file to look for processes of the old server
    /// that still hold its memory. If a PostgreSQL on this data has it, the file is right. Only a stranger's process
    /// that got the number later would keep PostgreSQL from ever starting.
    pub fn clear_stale_pid_file(&self) {
        let file = self.data().join("postmaster.pid");
        let Some(pid) = fs::read_to_string(&file)
            .ok()
            .and_then(|text| first_number(&text))
        else {
            return;
        };
        // Where there is no /proc, we cannot know and leave the file alone.
        let Ok(command_line) = fs::read(format!("/proc/{pid}/cmdline")) else {
            return;
        };
        // A process that is dead and not waited for yet has no arguments; it may be the one that we killed.
        if command_line.is_empty() {
            return;
        }
        let data = self.data();
        let ours = command_line
            .split(|byte| *byte == 0)
            .any(|arg| arg == data.as_os_str().as_encoded_bytes());
        if !ours {
            // If it cannot be removed, PostgreSQL says why it does not start.
            let _ = fs::remove_file(&file);
        }
    }

    fn unfinished(&self) -> PathBuf {
        self.path.join("data.unfinished")
    }
}

impl Account {
    /// Whom PostgreSQL runs as: for root an ordinary user, for anybody else themselves (none).
    fn to_run_as() -> anyhow::Result<Option<Self>> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        let user = ORDINARY_USERS
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten());
        let user = user.context(
            "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as",
        )?;
        Ok(Some(Self {
            uid: user.uid,
            gid: user.gid,
        }))
    }

    /// Tried, not computed: modes of all parents, access lists and mount options have a say.
    fn can_reach(self, folder: &Path) -> bool {
        let mut nothing = Command::new("true");
        nothing
            .uid(self.uid.as_raw())
            .gid(self.gid.as_raw())
            .current_dir(folder)
            .stdin(Stdio::null());
        nothing.status().is_ok_and(|status| status.success())
    }
}

/// The same place for the same folder, in every run and every build.
fn place_elsewhere(folder: &Path) -> PathBuf {
    let hash = fnv1a(folder.as_os_str().as_encoded_bytes());
    Path::new(ELSEWHERE).join(format!("doublebook-{hash:016x}"))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Makes the folder for its user alone. One that is there must already be theirs: anybody may write to `/var/tmp`.
fn make_private(path: &Path, account: Option<Account>) -> anyhow::Result<()> {
    let owner = account.map_or_else(Uid::effective, |account| account.uid);
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => give(path, account)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let there = fs::symlink_metadata(path)?;
            ensure!(
                there.is_dir() && there.uid() == owner.as_raw(),
                "it is there and belongs to somebody else"
            );
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// The password, made at the first start.
fn password(file: &Path, account: Option<Account>) -> io::Result<String> {
    match fs::read_to_string(file) {
        Ok(password) => return Ok(password.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let password = uuid::Uuid::new_v4().simple().to_string();
    // Moved to its place when it is whole: a password cut short would lock us out of the data.
    let unfinished = file.with_extension("unfinished");
    let mut written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    written.write_all(password.as_bytes())?;
    written.sync_all()?;
    give(&unfinished, account)?;
    fs::rename(&unfinished, file)?;
    Ok(password)
}

fn give(path: &Path, account: Option<Account>) -> io::Result<()> {
    match account {
        Some(account) => chown(path, Some(account.uid.as_raw()), Some(account.gid.as_raw())),
        None => Ok(()),
    }
}

fn first_number(text: &str) -> Option<u32> {
    text.lines().next()?.trim().parse().ok()
}
