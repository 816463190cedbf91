//! `doublebook up`: replicas, a database and lock servers on this machine, for as long as it runs.
//!
//! It promises that everything it starts is private to this run and ends with it, that a wrong setting is told before
//! anything is started, and that what dies is started again. It takes no part in bookings: a replica does not know
//! whether `up` or somebody else started it.

mod data_folder;

mod plan;

mod replica;

mod servers;

mod supervision;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use futures_util::future::try_join_all;

use self::data_folder::DataFolder;
use self::plan::{Database, Plan};
use self::replica::Replica;
use self::servers::{Addresses, Servers};
use self::supervision::Supervisor;
use super::lock_servers::LockServerArgs;
use super::stop::StopSignals;
use super::{LogFormat, say};
use crate::stack::Launcher;

/// Runs replicas, a database and every lock server found on this machine.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// How many replicas; they are named A, B, C …
    #[arg(long, env = "DOUBLEBOOK_REPLICAS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=26))]
    pub replicas: u16,

    /// The port of replica A; the next ones follow
    #[arg(long, env = "DOUBLEBOOK_PORT", default_value_t = 3001, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,

    /// sqlite (a file in the data folder), postgres (a private one), or the URL of a database
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite"
    )]
    pub database: String,

    /// Lock servers to start: auto (every one found), none, or a list such as redis,etcd
    /// [default: auto; none with the URL of a database]
    #[arg(long, env = "DOUBLEBOOK_SERVERS")]
    pub servers: Option<String>,

    /// The folder of everything that is kept
    #[arg(
        long,
        env = "DOUBLEBOOK_DATA_DIR",
        default_value = ".doublebook",
        value_name = "FOLDER"
    )]
    pub data_dir: PathBuf,

    /// Lock servers that run already, used instead of private ones
    #[command(flatten)]
    pub lock_servers: LockServerArgs,
}

/// Starts everything, keeps it running until Ctrl-C or SIGTERM, and stops it: replicas first, then servers.
pub async fn run(args: UpArgs, log: LogFormat) -> anyhow::Result<()> {
    let plan = Plan::new(&args)?;
    let folder = DataFolder::lock(&args.data_dir)?;
    plan.check_ports(folder.predecessor_was_killed()).await?;
    let mut stop = StopSignals::listen()?;

    let running = tokio::select! {
        running = start(&plan, folder.path(), log) => running?,
        // What has been started is dropped, and its guards end it.
        () = stop.received() => return Ok(()),
    };
    running.announce();
    let supervised = running.supervise();

    stop.received().await;
    say("stopping; press Ctrl-C again to stop at once");
    tokio::select! {
        () = supervised.stop() => folder.leave(),
        () = stop.received() => Ok(()),
    }
}

/// Everything that runs.
struct Running {
    replicas: Vec<Replica>,
    servers: Servers,
    /// The database in words, without its password.
    database: String,
}

async fn start(plan: &Plan, folder: &Path, log: LogFormat) -> anyhow::Result<Running> {
    plan.missing().iter().for_each(say);
    // Java servers take seconds.
    say("starting the servers, then the replicas");
    let launcher = Launcher::of_this_program().context("cannot find this program's own file")?;
    let servers = Servers::start(plan, &launcher, folder).await?;
    let addresses = Addresses::of(plan, &servers, folder)?;

    super::prepare(
        &addresses.database,
        &addresses.locks(),
        plan.database_is_ours(),
    )
    .await
    .context("cannot prepare the database")?
    .iter()
    .for_each(say);

    let count = plan.replicas().count();
    let replicas = plan.replicas().map(|(name, port)| {
        let program = replica::program(&launcher, name, port, folder, count);
        let program = addresses.tell(program);
        let program = program.env("DOUBLEBOOK_LOG", log.as_str());
        Replica::start(launcher.clone(), program, name, port)
    });
    let replicas = try_join_all(replicas).await?;
    let database = in_words(plan, &servers, folder);
    Ok(Running {
        replicas,
        servers,
        database,
    })
}

fn in_words(plan: &Plan, servers: &Servers, folder: &Path) -> String {
    match (&plan.database, &servers.postgres) {
        (Database::Url(_), _) => "the one that was given".to_owned(),
        (_, Some(postgres)) => format!("a private PostgreSQL on 127.0.0.1:{}", postgres.port()),
        (_, None) => format!("SQLite in {}", sqlite_file(folder).display()),
    }
}

fn sqlite_file(folder: &Path) -> PathBuf {
    folder.join("doublebook.db")
}

impl Running {
    fn announce(&self) {
        say("doublebook is running:");
        for replica in &self.replicas {
            say(format!("  replica {}  {}", replica.name(), replica.url()));
        }
        for (server, ports) in self.servers.ports() {
            say(format!("  {:<10} private, on port {ports}", server.name()));
        }
        say(format!("  database   {}", self.database));
        say("press Ctrl-C to stop");
    }

    fn supervise(self) -> Supervised {
        let mut replicas = Supervisor::default();
        for replica in self.replicas {
            replicas.watch(replica);
        }
        let mut servers = Supervisor::default();
        self.servers.supervise(&mut servers);
        Supervised { replicas, servers }
    }
}

/// Everything that is kept running.
struct Supervised {
    replicas: Supervisor,
    servers: Supervisor,
}

impl Supervised {
    /// Replicas first: they finish what they have begun, and need the servers for it.
    async fn stop(self) {
        self.replicas.stop().await;
        self.servers.stop().await;
    }
}
