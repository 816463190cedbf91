//! `doublebook serve`: one replica, from its start to its stop.
//!
//! Promises: a setting that cannot be used is told in one line before anything is opened; on SIGTERM nobody waits for
//! a lock any longer, holders have [`HOLDERS_GRACE`], and the process ends with code 0 within five seconds.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::http::Uri;
use axum::serve::ListenerExt;
use clap::Args;
use clap::builder::FalseyValueParser;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpStream};

use super::lock_servers::LockServerArgs;
use super::stop::StopSignals;
use super::{UsageError, address, prepare};
use crate::app::{App, Attempts, HOLDERS_GRACE, Me, Shutdown};
use crate::database::Database;
use crate::http;
use crate::journal::Journal;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::name::Name;
use crate::peers::{self, Peers};
use crate::race::Running;
use crate::section::{Gates, LeasesLeft, Locks};

/// The most threads that a replica runs on: more than any machine has processors.
const MOST_THREADS: i64 = 1024;

/// How long a start waits for its database, said aloud while it waits.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// What is left, after the holders' grace, for answers and releases.
const LAST_MOMENTS: Duration = Duration::from_millis(1200);

/// How long each of the last courtesies may take: releases, signing off, closing.
const COURTESY: Duration = Duration::from_millis(200);

/// How long a client may leave unread what was sent to it, before the system cuts its connection off: a stream that
/// nobody reads would keep its place for ever.
#[cfg(target_os = "linux")]
const UNREAD_LIMIT: Duration = Duration::from_secs(30);

/// What the system keeps at most for a client that does not read. Left to itself it grows to some megabytes for each.
const SEND_BUFFER: usize = 128 * 1024;

/// Runs one replica.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The name of this replica, one for each that shares the database
    #[arg(long, env = "DOUBLEBOOK_NAME", default_value = "A")]
    pub name: String,

    /// The address to listen on
    #[arg(long, env = "DOUBLEBOOK_LISTEN", default_value = "127.0.0.1:3001")]
    pub listen: SocketAddr,

    /// The URL under which the other replicas reach this one [default: http:// and the address listened on]
    #[arg(long, env = "DOUBLEBOOK_ADVERTISE", value_name = "URL")]
    pub advertise: Option<String>,

    /// The database shared by all replicas [default: doublebook.db in the data folder]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,

    /// Refuse requests that ask for a pause
    #[arg(long, env = "DOUBLEBOOK_NO_FAILPOINTS", value_parser = FalseyValueParser::new())]
    pub no_failpoints: bool,

    /// A name under which browsers may reach this replica, besides localhost (repeat it for more)
    #[arg(
        long,
        env = "DOUBLEBOOK_ALLOW_HOST",
        value_delimiter = ',',
        value_name = "HOST"
    )]
    pub allow_host: Vec<String>,

    /// The folder of the embedded database
    #[arg(
        long,
        env = "DOUBLEBOOK_DATA_DIR",
        default_value = ".doublebook",
        value_name = "FOLDER"
    )]
    pub data_dir: PathBuf,

    /// How many threads run it; by default as many as there are processors
    #[arg(
        long,
        env = "DOUBLEBOOK_THREADS",
        value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS),
        value_name = "NUMBER"
    )]
    pub threads: Option<u16>,

    /// Where the lock servers are; without them there are only the locks that need none
    #[command(flatten)]
    pub lock_servers: LockServerArgs,
}

/// Runs one replica until it is told to stop.
///
/// # Errors
/// [`UsageError`] for a setting that cannot be used; whatever keeps it from starting.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    // First of all: the first process of a container is ended by no signal that it does not listen to.
    let mut stop = StopSignals::listen()?;
    let (listener, app) = tokio::select! {
        started = start(args) => started?,
        () = stop.received() => return Ok(()),
    };
    answer_until_stopped(listener, app, stop).await
}

async fn start(args: ServeArgs) -> anyhow::Result<(TcpListener, Arc<App>)> {
    let _: Name = args
        .name
        .parse()
        .map_err(|error| UsageError::new(format!("--name {error}")))?;
    let database_url = database_url(&args)?;
    let lock_servers = args.lock_servers.checked()?;
    let listener = listen(args.listen).await?;
    let me = Me {
        name: args.name.clone(),
        url: advertised(&args, &listener)?,
        pid: std::process::id(),
    };

    let database = Database::open(&database_url)?;
    let peers = Peers::new()?;
    let locks = Locks::new(&database, &lock_servers)?;
    prepare_database(&database_url, &database, &locks).await?;
    enter(&database, &peers, &me).await?;
    locks.compare_all(&database).await;

    let app = Arc::new(App {
        me,
        locks,
        database,
        journal: Journal::default(),
        gates: Gates::default(),
        leases_left: LeasesLeft::default(),
        metrics: Metrics::default(),
        peers,
        live: Live::default(),
        races: Running::default(),
        loads: Arc::default(),
        failpoints: !args.no_failpoints,
        allowed_hosts: args.allow_host,
        attempts: Attempts::default(),
        shutdown: Shutdown::default(),
        runtime: tokio::runtime::Handle::current(),
    });
    tracing::info!(
        url = app.me.url,
        "replica {} answers at {}",
        app.me.name,
        app.me.url
    );
    Ok((listener, app))
}

fn database_url(args: &ServeArgs) -> anyhow::Result<String> {
    if let Some(url) = args.database.as_ref().filter(|url| !url.is_empty()) {
        address::check_database("--database (DATABASE_URL)", url)?;
        return Ok(url.clone());
    }
    std::fs::create_dir_all(&args.data_dir).map_err(|error| {
        UsageError::new(format!("--data-dir {}: {error}", args.data_dir.display()))
    })?;
    address::sqlite_url(&args.data_dir.join("doublebook.db"))
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listening = TcpListener::bind(address).await;
    Ok(listening.map_err(|error| UsageError::new(format!("--listen {address}: {error}")))?)
}

/// Where the other replicas, and their races, reach this one.
fn advertised(args: &ServeArgs, listener: &TcpListener) -> anyhow::Result<String> {
    let Some(url) = args.advertise.as_ref().filter(|url| !url.is_empty()) else {
        let address = listener.local_addr()?;
        if address.ip().is_unspecified() {
            tracing::warn!(
                "listening on {address} without --advertise: replicas on other hosts will not find this one"
            );
            return Ok(format!("http://127.0.0.1:{}", address.port()));
        }
        return Ok(format!("http://{address}"));
    };
    let uri: Option<Uri> = url.parse().ok();
    match uri.filter(|uri| uri.scheme_str() == Some("http") && uri.host().is_some()) {
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
        None => Err(UsageError::new(
            "--advertise (DOUBLEBOOK_ADVERTISE) must be like http://host:port",
        )
        .into()),
    }
}

/// Waits for the database, saying so, and brings its tables up to date.
async fn prepare_database(url: &str, database: &Database, locks: &Locks) -> anyhow::Result<()> {
    let ready = async {
        loop {
            let tried = async {
                Database::migrate(url).await?;
                prepare::make_main(database, locks.default_lock()).await
            };
            match tried.await {
                Ok(()) => return,
                Err(error) => tracing::warn!("waiting for the database: {error:#}"),
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
    };
    tokio::time::timeout(DATABASE_PATIENCE, ready)
        .await
        .with_context(|| {
            format!(
                "the database was not ready within {} s",
                DATABASE_PATIENCE.as_secs()
            )
        })
}

/// Enters this replica where the others look, unless another one that is alive has its name.
async fn enter(database: &Database, peers: &Peers, me: &Me) -> anyhow::Result<()> {
    if let Some(url) = peers::namesake(database, peers, me).await? {
        let name = &me.name;
        let line =
            format!("--name {name}: a replica of this name answers at {url}; choose another one");
        return Err(UsageError::new(line).into());
    }
    peers::register(database, me)
        .await
        .context("cannot enter this replica")
}

async fn answer_until_stopped(
    listener: TcpListener,
    app: Arc<App>,
    mut stop: StopSignals,
) -> anyhow::Result<()> {
    let stopped = {
        let app = Arc::clone(&app);
        async move {
            stop.received().await;
            tracing::info!(attempts = app.attempts.under_way(), "stopping");
            app.shutdown.begin();
            tokio::spawn(insist(Arc::clone(&app), stop));
        }
    };
    let answering = axum::serve(listener.tap_io(tune), http::router(Arc::clone(&app)))
        .with_graceful_shutdown(stopped);
    let last_moment = async {
        app.shutdown.hard().await;
        tokio::time::sleep(LAST_MOMENTS).await;
    };
    let everything = async {
        answering.await?;
        // A client that hung up took its connection along, not its attempt.
        app.attempts.ended().await;
        app.locks.settle(LAST_MOMENTS).await;
        anyhow::Ok(())
    };
    tokio::select! {
        ended = everything => ended?,
        () = last_moment => {
            tracing::warn!("some connections, attempts or releases had not ended");
            app.locks.settle(COURTESY).await;
        }
    }
    let signing_off = tokio::time::timeout(COURTESY, peers::sign_off(&app.database, &app.me));
    // Whoever cannot sign off is found to be gone by its silence.
    let _ = signing_off.await;
    app.database.close(COURTESY).await;
    tracing::info!("stopped");
    Ok(())
}

/// Sets a new connection up. It answers without these settings too, so one that is refused is no error.
fn tune(connection: &mut TcpStream) {
    // An event is small, and to be seen at once.
    let tuned = connection
        .set_nodelay(true)
        .and_then(|()| Ok(setsockopt(connection, sockopt::SndBuf, &SEND_BUFFER)?))
        .and_then(|()| cut_off_who_does_not_read(connection));
    if let Err(error) = tuned {
        tracing::debug!(%error, "a connection could not be set up as it should be");
    }
}

#[cfg(target_os = "linux")]
fn cut_off_who_does_not_read(connection: &TcpStream) -> std::io::Result<()> {
    let limit = UNREAD_LIMIT.as_millis() as u32;
    Ok(setsockopt(connection, sockopt::TcpUserTimeout, &limit)?)
}

/// Elsewhere such a connection stays until its other end closes it.
#[cfg(not(target_os = "linux"))]
fn cut_off_who_does_not_read(_: &TcpStream) -> std::io::Result<()> {
    Ok(())
}

/// Ends the holders' grace: when nobody is left, after its time, or at once when asked to stop a second time.
async fn insist(app: Arc<App>, mut stop: StopSignals) {
    tokio::select! {
        () = app.attempts.ended() => {}
        () = tokio::time::sleep(HOLDERS_GRACE) => {}
        () = stop.received() => {}
    }
    app.shutdown.insist();
}
