//! Two replicas, the database and the lock servers that they share.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doublebook::stack::{PostgresServer, RedisServer};
use nix::sys::signal::Signal;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use super::answer::Answer;
use super::deadline::{PATIENCE, eventually};
use super::forwarder::Forwarder;
use super::ports::free_ports;
use super::process::Process;
use super::room::{Room, unique};
use super::servers::{self, Folder};

/// Which database the replicas share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// One of the two replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replica {
    A,
    B,
}

pub use Replica::{A, B};

impl Replica {
    /// As it calls itself.
    pub fn name(self) -> &'static str {
        match self {
            A => "A",
            B => "B",
        }
    }
}

/// No answer takes longer: the longest wait that a room can ask for, and some patience.
const LONGEST_ANSWER: Duration = Duration::from_secs(100);

/// What runs; ends with its value.
pub struct Running {
    pub database: Database,
    pub database_url: String,
    /// One for both replicas, or one for each.
    redis: Vec<Mutex<RedisServer>>,
    redis_urls: Vec<String>,
    postgres: Option<Mutex<PostgresServer>>,
    /// Between replica A and its PostgreSQL.
    cable: Option<Forwarder>,
    replicas: [Process; 2],
    own_clocks: bool,
    ports: [u16; 2],
    folder: Folder,
}

/// The replicas as one test sees them.
pub struct World {
    running: Arc<Running>,
    client: Client,
}

/// A way to a replica.
#[derive(Clone)]
pub struct Connection {
    pub replica: Replica,
    client: Client,
    running: Arc<Running>,
}

impl Connection {
    /// A request below `/api`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(
            method,
            format!("{}/api{path}", self.running.url(self.replica)),
        )
    }

    /// A POST below `/api`.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }
}

impl World {
    /// The two replicas that most tests of a database share, each test in a room of its own.
    pub async fn shared(database: Database) -> Self {
        static SQLITE: OnceCell<Arc<Running>> = OnceCell::const_new();
        static POSTGRES: OnceCell<Arc<Running>> = OnceCell::const_new();
        let shared = match database {
            Database::Sqlite => &SQLITE,
            Database::Postgres => &POSTGRES,
        };
        let running = shared
            .get_or_init(async || Arc::new(Own::on(database).runs().await))
            .await;
        Self::of(Arc::clone(running))
    }

    /// Two replicas for one test, which may hurt them.
    pub fn own(database: Database) -> Own {
        Own::on(database)
    }

    /// The shared world that has this lock; or one of the test's own where the lock is one on the whole SQLite file,
    /// since that would stop all other rooms.
    pub async fn for_lock(database: Database, lock: &str) -> Self {
        match (database, lock) {
            (Database::Sqlite, "row") => Self::own(database).start().await,
            (_, "mutex" | "redis" | "table" | "row") => Self::shared(database).await,
            _ => Self::shared_with_all_locks(database).await,
        }
    }

    /// As [`shared`](Self::shared), with every lock server.
    async fn shared_with_all_locks(database: Database) -> Self {
        static SQLITE: OnceCell<Arc<Running>> = OnceCell::const_new();
        static POSTGRES: OnceCell<Arc<Running>> = OnceCell::const_new();
        let shared = match database {
            Database::Sqlite => &SQLITE,
            Database::Postgres => &POSTGRES,
        };
        let running = shared
            .get_or_init(async || Arc::new(Own::on(database).with_all_locks().runs().await))
            .await;
        Self::of(Arc::clone(running))
    }

    fn of(running: Arc<Running>) -> Self {
        Self {
            running,
            client: client(),
        }
    }

    pub fn database(&self) -> Database {
        self.running.database
    }

    pub fn database_url(&self) -> &str {
        &self.running.database_url
    }

    /// The address of the Redis of replica A.
    pub fn redis_url(&self) -> &str {
        &self.running.redis_urls[0]
    }

    /// A new room with the default seats and wallets.
    pub async fn room(&self, topic: &str) -> Room {
        self.room_of(topic, json!({})).await
    }

    /// A new room of any shape.
    pub async fn room_of(&self, topic: &str, shape: Value) -> Room {
        let room = self.no_room(&unique(topic));
        let answer = room.is_made(shape).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        room
    }

    /// A new room with these switches.
    pub async fn room_with(&self, topic: &str, switches: Value) -> Room {
        let room = self.room(topic).await;
        room.switches(switches).await;
        room
    }

    /// A room that nobody made, at least not here.
    pub fn no_room(&self, name: &str) -> Room {
        Room::new(name, self.connection(A))
    }

    /// `http://127.0.0.1:…` of a replica.
    pub fn url(&self, replica: Replica) -> String {
        self.running.url(replica)
    }

    pub fn port(&self, replica: Replica) -> u16 {
        self.running.ports[replica as usize]
    }

    /// Any request to any path of a replica.
    pub fn request(&self, replica: Replica, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.url(replica)))
    }

    /// A GET of any path of a replica.
    pub async fn get(&self, replica: Replica, path: &str) -> Answer {
        Answer::to(self.request(replica, Method::GET, path))
            .await
            .expect("an answer")
    }

    /// The process of a replica.
    pub fn process(&self, replica: Replica) -> &Process {
        self.running.process(replica)
    }

    /// Ends a replica as a crash would.
    pub fn kills(&self, replica: Replica) {
        self.process(replica).kill();
    }

    /// Asks a replica to stop.
    pub fn terminates(&self, replica: Replica) {
        self.process(replica).signal(Signal::SIGTERM);
    }

    /// Starts a replica that was ended, and waits until both know each other again.
    pub async fn starts(&self, replica: Replica) {
        self.running.start(replica);
        self.running.is_ready(&self.client).await;
    }

    /// Waits until both replicas are ready and know each other.
    pub async fn is_ready(&self) {
        self.running.is_ready(&self.client).await;
    }

    /// The ports of the Redis servers, as texts.
    pub fn redis_ports(&self) -> Vec<String> {
        let urls = self.running.redis_urls.iter();
        urls.filter_map(|url| url.rsplit(':').next())
            .map(|port| port.trim_end_matches('/').to_owned())
            .collect()
    }

    /// The Redis that both replicas use.
    pub fn redis(&self) -> &Mutex<RedisServer> {
        &self.running.redis[0]
    }

    /// Sets the wall clock of a replica this far off the machine's, in seconds.
    pub fn sets_clock(&self, replica: Replica, seconds: i64) {
        set_clock(&self.running.folder, replica, seconds);
    }

    /// The cable between replica A and its PostgreSQL.
    pub fn cable(&self) -> &Forwarder {
        self.running.cable.as_ref().expect("a world with a cable")
    }

    /// The PostgreSQL of this world alone.
    pub fn postgres(&self) -> &Mutex<PostgresServer> {
        self.running
            .postgres
            .as_ref()
            .expect("a PostgreSQL of its own")
    }

    fn connection(&self, replica: Replica) -> Connection {
        Connection {
            replica,
            client: self.client.clone(),
            running: Arc::clone(&self.running),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for replica in [A, B] {
                let tail = self.process(replica).tail();
                println!("--- the last lines of replica {}:\n{tail}", replica.name());
            }
        }
    }
}

impl Running {
    fn url(&self, replica: Replica) -> String {
        format!("http://127.0.0.1:{}", self.ports[replica as usize])
    }

    fn process(&self, replica: Replica) -> &Process {
        &self.replicas[replica as usize]
    }

    fn start(&self, replica: Replica) {
        let pid = self.process(replica).start();
        self.folder.ends(pid);
    }

    /// Waits until both replicas are ready and see each other.
    async fn is_ready(&self, client: &Client) {
        for replica in [A, B] {
            eventually("a ready replica", PATIENCE, async || {
                self.process(replica).assert_alive();
                let url = self.url(replica);
                let ready = client.get(format!("{url}/readyz")).send().await;
                let ready = ready.map_err(|error| error.to_string())?;
                if ready.status() != 200 {
                    return Err(format!("/readyz: {}", ready.status()));
                }
                let list = Answer::to(client.get(format!("{url}/api/replicas"))).await;
                let list = list.map_err(|error| error.to_string())?;
                let list: Value = serde_json::from_str(&list.text).map_err(|e| e.to_string())?;
                let others = list.as_array().into_iter().flatten();
                let alive = others.filter(|other| other["alive"] == true).count();
                match alive {
                    2 => Ok(()),
                    _ => Err(format!("/api/replicas: {list}")),
                }
            })
            .await;
        }
    }
}

/// A world of one test, before it is started.
pub struct Own {
    database: Database,
    flags: Vec<&'static str>,
    own_postgres: bool,
    cable: bool,
    redis_servers: usize,
    all_locks: bool,
    clocks: Option<[i64; 2]>,
}

impl Own {
    fn on(database: Database) -> Self {
        Self {
            database,
            flags: Vec::new(),
            own_postgres: false,
            cable: false,
            redis_servers: 1,
            all_locks: false,
            clocks: None,
        }
    }

    /// More flags for `serve`.
    pub fn serving(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    /// With a PostgreSQL that the test may stop.
    pub fn with_its_own_postgres(mut self) -> Self {
        self.own_postgres = true;
        self
    }

    /// With a cable between replica A and its PostgreSQL that can have faults.
    pub fn with_a_cable(mut self) -> Self {
        self.cable = true;
        self
    }

    /// With the lock servers that this lock needs.
    pub fn with(self, lock: &str) -> Self {
        match lock {
            "mutex" | "redis" | "table" | "row" => self,
            _ => self.with_all_locks(),
        }
    }

    fn with_all_locks(mut self) -> Self {
        self.all_locks = true;
        self
    }

    /// Each replica with a Redis of its own, as two hosts that were set up carelessly.
    pub fn with_a_redis_each(mut self) -> Self {
        self.redis_servers = 2;
        self
    }

    /// Each replica with a wall clock of its own, at first this many seconds off the machine's.
    pub fn with_clocks(mut self, seconds: [i64; 2]) -> Self {
        self.clocks = Some(seconds);
        self
    }

    pub async fn start(self) -> World {
        World::of(Arc::new(self.runs().await))
    }

    async fn runs(self) -> Running {
        let running = self.prepares().await;
        for replica in [A, B] {
            running.start(replica);
        }
        running.is_ready(&client()).await;
        running
    }

    async fn prepares(self) -> Running {
        let folder = Folder::new("world");
        let mut redis = Vec::new();
        for number in 0..self.redis_servers {
            redis.push(servers::redis(folder.join(&format!("redis-{number}"))).await);
        }
        let redis_urls: Vec<String> = redis
            .iter()
            .map(|server| server.url().to_string())
            .collect();
        let mut postgres = None;
        let database_url = match self.database {
            Database::Sqlite => format!("sqlite:{}", folder.join("doublebook.db").display()),
            Database::Postgres if self.own_postgres => {
                let server = servers::postgres(folder.join("postgres")).await;
                let url = server
                    .create_database("doublebook")
                    .await
                    .expect("a new database");
                postgres = Some(Mutex::new(server));
                url
            }
            Database::Postgres => servers::shared_postgres_database(&database_name()).await,
        };

        let mut cable = None;
        let mut database_urls = [database_url.clone(), database_url.clone()];
        if self.cable {
            let mut url = reqwest::Url::parse(&database_url).expect("the address of a server");
            let port = url.port().expect("a port");
            let started = Forwarder::start((Ipv4Addr::LOCALHOST, port).into()).await;
            let started = started.expect("a free port");
            url.set_port(Some(started.address().port()))
                .expect("a port");
            database_urls[A as usize] = url.to_string();
            cable = Some(started);
        }

        let lock_servers = match self.all_locks {
            true => servers::LockServers::shared().await.environment(),
            false => Vec::new(),
        };
        let first_port = free_ports(2);
        let ports = [first_port, first_port + 1];
        let replicas = [A, B].map(|replica| {
            let listen = format!("127.0.0.1:{}", ports[replica as usize]);
            let mut arguments = vec!["serve", "--name", replica.name(), "--listen", &listen];
            arguments.extend(&self.flags);
            let redis_url = redis_urls
                .get(replica as usize)
                .unwrap_or_else(|| &redis_urls[0]);
            let mut environment = vec![
                ("DATABASE_URL", database_urls[replica as usize].as_str()),
                ("REDIS_URL", redis_url.as_str()),
            ];
            let others = lock_servers.iter();
            environment.extend(others.map(|(name, address)| (*name, address.as_str())));
            let clock = clock(&folder, replica).display().to_string();
            if let Some(seconds) = self.clocks {
                set_clock(&folder, replica, seconds[replica as usize]);
                environment.extend([
                    ("LD_PRELOAD", FAKE_CLOCK),
                    ("FAKETIME_TIMESTAMP_FILE", &clock),
                    ("FAKETIME_NO_CACHE", "1"),
                    // What a machine's clock does to a program when somebody sets it.
                    ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ]);
            }
            let output = folder.join(&format!("{}.log", replica.name()));
            Process::new(&arguments, &environment, &output)
        });
        Running {
            database: self.database,
            database_url,
            redis: redis.into_iter().map(Mutex::new).collect(),
            redis_urls,
            postgres,
            cable,
            replicas,
            own_clocks: self.clocks.is_some(),
            ports,
            folder,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.own_clocks {
            for replica in &self.replicas {
                forget_clock(replica);
            }
        }
    }
}

/// libfaketime (Debian: faketime), in the folder of libraries of this machine.
const FAKE_CLOCK: &str = "/usr/$LIB/faketime/libfaketimeMT.so.1";

/// The file in which a replica's clock is set.
fn clock(folder: &Folder, replica: Replica) -> PathBuf {
    folder.join(&format!("{}.clock", replica.name()))
}

/// All of it or nothing: the replica reads it whenever it asks for the time.
fn set_clock(folder: &Folder, replica: Replica, seconds: i64) {
    let draft = folder.join(&format!("{}.clock-draft", replica.name()));
    std::fs::write(&draft, format!("{seconds:+}")).expect("a file for the clock");
    std::fs::rename(&draft, clock(folder, replica)).expect("a clock that is set");
}

/// Ends the replica and what libfaketime leaves behind of a process that is killed.
fn forget_clock(replica: &Process) {
    let pid = replica.pid();
    replica.kill();
    for left in ["sem.faketime_sem_", "faketime_shm_"] {
        // It may have removed them itself.
        let _ = std::fs::remove_file(format!("/dev/shm/{left}{pid}"));
    }
}

fn database_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("world_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A client that asks replicas directly.
pub fn client() -> Client {
    Client::builder()
        .no_proxy()
        .timeout(LONGEST_ANSWER)
        // What a page answers to a form is itself of interest.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client")
}
