//! Real servers, started as `up` starts them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use doublebook::stack::{Launcher, PostgresServer, RedisServer};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use super::keeper::Keeper;
use super::process::PROGRAM;

/// Lives as long as the tests, unlike the runtime of a single test: what is shared begins here.
static LASTING: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// Runs a future where its tasks outlive the test that asked for it.
pub async fn lasting<F>(future: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    LASTING.spawn(future).await.expect("it did not panic")
}

/// A folder that is removed with its value or, when that is never dropped, soon after the tests have ended.
pub struct Folder {
    folder: tempfile::TempDir,
    keeper: Keeper,
}

impl Folder {
    /// A new folder that any user may look into, since PostgreSQL does not run as root.
    pub fn new(name: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix(&format!("doublebook-{name}-"))
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a folder");
        let keeper = Keeper::of(folder.path());
        Self { folder, keeper }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file or folder inside.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Ends this process, too, at the latest when the tests have ended.
    pub fn ends(&self, pid: u32) {
        self.keeper.ends(pid);
    }
}

/// A Redis with its data in this folder.
pub async fn redis(folder: PathBuf) -> RedisServer {
    lasting(async move {
        std::fs::create_dir_all(&folder).expect("a folder");
        RedisServer::start(&Launcher::new(PROGRAM), &folder)
            .await
            .expect("redis-server starts (Debian: redis-server)")
    })
    .await
}

/// A PostgreSQL with its data in this folder.
pub async fn postgres(folder: PathBuf) -> PostgresServer {
    lasting(async move {
        std::fs::create_dir_all(&folder).expect("a folder");
        PostgresServer::start(&Launcher::new(PROGRAM), &folder)
            .await
            .expect("PostgreSQL starts (Debian: postgresql)")
    })
    .await
}

/// An empty database on the PostgreSQL that all tests share.
pub async fn shared_postgres_database(name: &str) -> String {
    static SHARED: OnceCell<(PostgresServer, Folder)> = OnceCell::const_new();
    let (server, _) = SHARED
        .get_or_init(async || {
            let folder = Folder::new("postgres");
            (postgres(folder.join("postgres")).await, folder)
        })
        .await;
    server.create_database(name).await.expect("a new database")
}
