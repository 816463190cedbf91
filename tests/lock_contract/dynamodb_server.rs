//! DynamoDB Local: one server for all tests, each with a table of its own, and one for each test that ends its server.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
    types::AttributeValue,
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use doublebook::{
    lock::{LockSystem as _, systems::DynamoDb},
    stack::{DynamoDbServer, Launcher},
};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::keeper::Keeper;

/// Where the shared server lives: the runtime of a test ends with it.
static LASTING: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
});

/// After how many answers a server is warm.
const WARM_UP_ANSWERS: u32 = 100;

/// How long a server may take from its first answer to its first useful one.
const WARM_UP_DEADLINE: Duration = Duration::from_secs(60);

struct Shared {
    server: DynamoDbServer,
    _folder: TempDir,
    /// Statics are not dropped; it removes the folder when the tests have ended.
    _keeper: Keeper,
}

/// The address of the server that all tests share. It is started by the first one and ends with the last one.
pub async fn shared_url() -> Result<String> {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    let start = async || LASTING.spawn(start_shared()).await?;
    Ok(SHARED.get_or_try_init(start).await?.server.url())
}

async fn start_shared() -> Result<Shared> {
    let folder = folder_in_memory()?;
    Ok(Shared {
        server: start(folder.path()).await?,
        _keeper: Keeper::of(folder.path()),
        _folder: folder,
    })
}

/// In memory, where the system has such a folder: the server writes each change through to the disk, and hundreds of
/// tests' asks at once would wait for that.
fn folder_in_memory() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    })
}

/// A server with its data in this folder, for a test that ends it.
pub async fn start(folder: &Path) -> Result<DynamoDbServer> {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
    let server = DynamoDbServer::start(&launcher, folder).await?;
    warm_up(&server.url()).await?;
    Ok(server)
}

/// Asks until a Java machine that has just started is quick: its first answers take seconds each, if others need the
/// processors as well.
pub async fn warm_up(url: &str) -> Result<()> {
    let (system, began) = (open(url, "warm_up")?, Instant::now());
    let mut answers = 0;
    while answers < WARM_UP_ANSWERS {
        match system.server("warm").await {
            Ok(_) => answers += 1,
            Err(error) => ensure!(began.elapsed() < WARM_UP_DEADLINE, "{error}"),
        }
    }
    Ok(())
}

/// The name of a table that no other test uses.
pub fn new_table() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// One process's view of a table.
pub fn open(url: &str, table: &str) -> Result<DynamoDb> {
    Ok(DynamoDb::local(url)?.in_table(table))
}

/// Looks at the items themselves.
pub fn client(url: &str) -> Client {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(url)
        .http_client(http);
    Client::from_conf(config.build())
}

/// All items of a table, each as the names of its attributes with their values.
pub async fn items(url: &str, table: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let scanned = client(url)
        .scan()
        .table_name(table)
        .consistent_read(true)
        .send();
    let items = scanned.await?.items.unwrap_or_default();
    let text = |value: &AttributeValue| match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let item = |item: HashMap<String, AttributeValue>| {
        item.iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    };
    Ok(items.into_iter().map(item).collect())
}
