//! A private PostgreSQL: loopback only, behind a password made for it, its data kept from run to run.
//!
//! PostgreSQL refuses to run as root. For root it runs as an ordinary user, and where that user cannot reach the
//! folder, its data stands elsewhere ([`home`]).

pub mod home;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use nix::unistd::Pid;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::time::{Instant, sleep, timeout};

use self::home::Home;
use super::child::{Guarded, Launcher, Program, StopSignal};
use super::found::Known;
use super::port;
use super::ready::{NotReady, until_ready};

/// The superuser, and the database that always exists.
const NAME: &str = "doublebook";

/// How long `initdb` may take on a slow disk.
const INITDB_DEADLINE: Duration = Duration::from_secs(90);

/// How long PostgreSQL may take to accept connections; after a crash it replays its log first.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// How long a PostgreSQL that ends at once is started anew: the guard of a killed run may still be ending the old one,
/// and the old one's processes may still hold its shared memory.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(6);

/// The pause between two such attempts.
const PREDECESSOR_PAUSE: Duration = Duration::from_millis(200);

/// How long making a database may take.
const CREATE_DEADLINE: Duration = Duration::from_secs(30);

/// Connections for all replicas, and for the tests that share one server.
const MAX_CONNECTIONS: u32 = 200;

/// A running PostgreSQL. Dropped, it ends; its data stays.
#[derive(Debug)]
pub struct PostgresServer {
    launcher: Launcher,
    program: PathBuf,
    home: Home,
    port: u16,
    process: Guarded,
}

impl PostgresServer {
    /// Starts a PostgreSQL on a free port, its data below `folder`, its log `postgres.log` in `folder`.
    pub async fn start(launcher: &Launcher, folder: &Path) -> anyhow::Result<Self> {
        let program = Known::Postgres.required()?;
        let home = Home::prepare(folder)?;
        initialize(launcher, &program, &home).await?;

        let deadline = Instant::now() + PREDECESSOR_PATIENCE;
        let free_port = || port::free().context("no free port for postgres");
        let (port, process) = launch(launcher, &program, &home, free_port, deadline).await?;
        let server = Self {
            launcher: launcher.clone(),
            program,
            home,
            port,
            process,
        };
        server.create_database(NAME).await?;
        Ok(server)
    }

    /// Starts it again after it ended or was stopped: the same port, the same data.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        let deadline = Instant::now() + PREDECESSOR_PATIENCE;
        let same_port = || Ok(self.port);
        (_, self.process) = launch(
            &self.launcher,
            &self.program,
            &self.home,
            same_port,
            deadline,
        )
        .await?;
        Ok(())
    }

    /// The address of the database `doublebook`, password included.
    pub fn url(&self) -> String {
        self.url_of(NAME)
    }

    /// Creates a database unless it is there, and returns its address.
    pub async fn create_database(&self, name: &str) -> anyhow::Result<String> {
        ensure!(
            is_plain(name),
            "{name:?} is no plain name for a database: a-z, 0-9 and _ only"
        );
        timeout(
            CREATE_DEADLINE,
            create(&options(self.port, &self.home), name),
        )
        .await
        .map_err(|_| anyhow!("postgres did not answer within {CREATE_DEADLINE:?}"))?
        .with_context(|| format!("cannot create the database {name}"))?;
        Ok(self.url_of(name))
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process of `postgres` itself.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Where its data stands, if not below the folder that was asked for.
    pub fn stands_elsewhere(&self) -> Option<&Path> {
        self.home.elsewhere()
    }

    /// Waits until it has ended, for whatever reason.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Asks it to end and waits until it has: clients are sent away, data is written.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.process.stop().await
    }

    /// Kills it with SIGKILL, as a crash would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    fn url_of(&self, database: &str) -> String {
        format!(
            "postgres://{NAME}:{}@127.0.0.1:{}/{database}?sslmode=disable",
            self.home.password(),
            self.port
        )
    }
}

/// Makes the data, once. It is made beside its place and then moved there, so that half of it is never taken for all.
async fn initialize(launcher: &Launcher, postgres: &Path, home: &Home) -> anyhow::Result<()> {
    if home.has_data() {
        return Ok(());
    }
    let unfinished = home.clear_unfinished()?;
    let initdb = home
        .program(postgres.with_file_name("initdb"))
        .args([
            "--username",
            NAME,
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
        ])
        .arg("--pwfile")
        .arg(home.password_file())
        .arg("--pgdata")
        .arg(unfinished);

    let mut process = launcher.spawn(&initdb).await?;
    let status = timeout(INITDB_DEADLINE, process.wait()).await;
    let status = status.map_err(|_| anyhow!("initdb did not end within {INITDB_DEADLINE:?}"))??;
    ensure!(
        status.success(),
        "initdb failed ({status}){}",
        initdb.hint()
    );
    home.finish_data()
}

/// Starts it until it answers, or until `deadline` if it ends each time.
async fn launch(
    launcher: &Launcher,
    program: &Path,
    home: &Home,
    choose_port: impl Fn() -> anyhow::Result<u16>,
    deadline: Instant,
) -> anyhow::Result<(u16, Guarded)> {
    loop {
        let port = choose_port()?;
        let postgres = postgres_on(port, program, home);
        home.clear_stale_pid_file();

        let mut process = launcher.spawn(&postgres).await?;
        let maintenance = options(port, home);
        match until_ready(&mut process, START_DEADLINE, || accepts(&maintenance)).await {
            Ok(()) => return Ok((port, process)),
            Err(NotReady::Ended(_)) if Instant::now() < deadline => sleep(PREDECESSOR_PAUSE).await,
            Err(why) => return Err(anyhow!("cannot start postgres: {why}{}", postgres.hint())),
        }
    }
}

fn postgres_on(port: u16, program: &Path, home: &Home) -> Program {
    home.program(program.to_owned())
        .arg("-D")
        .arg(home.data())
        .args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("port={port}"),
        ])
        // Debian's default folder for sockets belongs to the system's own PostgreSQL.
        .args(["-c", "unix_socket_directories="])
        .args(["-c", &format!("max_connections={MAX_CONNECTIONS}")])
        .args([
            "-c",
            "logging_collector=off",
            "-c",
            "log_destination=stderr",
        ])
        .stop_signal(StopSignal::Int)
}

/// How to reach the database `postgres`, which `initdb` makes.
fn options(port: u16, home: &Home) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(port)
        .username(NAME)
        .password(home.password())
        .database("postgres")
        // On loopback, whatever the environment asks of other servers.
        .ssl_mode(PgSslMode::Disable)
        .disable_statement_logging()
}

/// Whether it accepts our password, which a stranger who took the port first would not.
async fn accepts(options: &PgConnectOptions) -> bool {
    match PgConnection::connect_with(options).await {
        Ok(connection) => connection.close().await.is_ok(),
        Err(_) => false,
    }
}

async fn create(options: &PgConnectOptions, name: &str) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(options).await?;
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
            .bind(name)
            .fetch_one(&mut connection)
            .await?;
    if !exists {
        // No statement that creates a database takes a parameter; the name has been checked to be plain.
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await?;
    }
    connection.close().await
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 63
        && name.bytes().all(plain)
}
