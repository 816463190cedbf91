//! Real servers, started as `up` starts them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use doublebook::commands::lock_servers::variable;
use doublebook::stack::found::Known;
use doublebook::stack::{
    DynamoDbServer, EtcdServer, Kind, Launcher, PostgresServer, RedisServer, Server,
    ZooKeeperServer, dynamodb, redlock,
};
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

/// Every lock server but the one Redis, which each world has for itself. Those with a Java machine start slowly, so all
/// worlds of a test program share them; no test may stop them.
pub struct LockServers {
    redlock: Vec<RedisServer>,
    etcd: EtcdServer,
    zookeeper: ZooKeeperServer,
    dynamodb: DynamoDbServer,
    _folder: Folder,
}

impl LockServers {
    /// Those that all worlds share.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<LockServers> = OnceCell::const_new();
        SHARED.get_or_init(|| lasting(Self::start())).await
    }

    async fn start() -> Self {
        let folder = Folder::new("locks");
        let launcher = Launcher::new(PROGRAM);
        let path = folder.path();
        let (redlock, etcd, zookeeper, dynamodb) = tokio::try_join!(
            redlock::start(&launcher, path),
            Server::start(&launcher, path),
            Server::start(&launcher, path),
            Server::start(&launcher, path),
        )
        .expect("every lock server starts");
        Self {
            redlock,
            etcd,
            zookeeper,
            dynamodb,
            _folder: folder,
        }
    }

    /// What a replica is told of them.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let nodes: Vec<_> = self.redlock.iter().map(Server::url).collect();
        let mut environment = vec![
            (variable(Known::Redlock), nodes.join(",")),
            told(&self.etcd),
            told(&self.zookeeper),
            told(&self.dynamodb),
        ];
        let credentials = dynamodb::CREDENTIALS.iter();
        environment.extend(credentials.map(|(name, value)| (*name, (*value).to_owned())));
        environment
    }
}

fn told<K: Kind>(server: &Server<K>) -> (&'static str, String) {
    (variable(K::KNOWN), server.url())
}
