//! A PostgreSQL that all cases share, each with a database of its own; it ends with the tests, and so does its folder.

use std::{
    os::unix::fs::PermissionsExt,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use doublebook::stack::{Launcher, PostgresServer};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::keeper::Keeper;

/// Lives as long as the tests: what is shared must not begin in the runtime of a single one.
static LASTING: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// A new, empty database; its address. Its commits do not wait for the disk: nobody crashes this server, and many tests
/// at once would wait for one disk.
pub async fn database() -> Result<String> {
    static SHARED: OnceCell<(PostgresServer, TempDir, Keeper)> = OnceCell::const_new();
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (server, ..) = SHARED
        .get_or_try_init(async || {
            let folder = folder()?;
            let keeper = Keeper::of(folder.path());
            let path = folder.path().join("postgres");
            let starting = LASTING.spawn(async move { start(&path).await });
            anyhow::Ok((starting.await??, folder, keeper))
        })
        .await?;
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("locks_{number}");
    let url = server.create_database(&name).await?;
    let mut connection = PgConnection::connect(&url).await?;
    let hasty = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    sqlx::raw_sql(AssertSqlSafe(hasty))
        .execute(&mut connection)
        .await?;
    Ok(url)
}

/// One of its own, for a test that kills it.
pub async fn own() -> Result<(PostgresServer, TempDir)> {
    let folder = folder()?;
    Ok((start(&folder.path().join("postgres")).await?, folder))
}

/// Any user may look into it, since PostgreSQL does not run as root.
fn folder() -> Result<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("doublebook-locks-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()?)
}

async fn start(path: &std::path::Path) -> Result<PostgresServer> {
    std::fs::create_dir_all(path)?;
    PostgresServer::start(&Launcher::new(env!("CARGO_BIN_EXE_doublebook")), path)
        .await
        .context("PostgreSQL does not start (Debian: postgresql)")
}
