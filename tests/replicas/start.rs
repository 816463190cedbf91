//! How a replica starts, what it says when it cannot, and how small it stays.

use std::time::Duration;

use crate::support::{
    A, Database, PATIENCE, PROGRAM, Process, Room, Scratch, Up, World, client, eventually,
    free_ports, promised, shared_postgres_database,
};

/// A replica on SQLite with nothing else needs at most this.
const RESIDENT_MB: u64 = 40;
/// How old it is then.
const AGE: Duration = Duration::from_secs(30);

on_both_databases!(five_replicas_start_together_on_an_empty_database);

async fn five_replicas_start_together_on_an_empty_database(database: Database) {
    let scratch = Scratch::new("five");
    let url = match database {
        Database::Sqlite => format!("sqlite:{}", scratch.join("doublebook.db").display()),
        Database::Postgres => shared_postgres_database("five").await,
    };
    let port = free_ports(5);
    let replicas: Vec<Process> = (0..5)
        .map(|number| {
            let listen = format!("127.0.0.1:{}", port + number);
            let name = format!("R{number}");
            let arguments = ["serve", "--name", &name, "--listen", &listen];
            let output = scratch.join(&format!("{name}.log"));
            Process::new(&arguments, &[("DATABASE_URL", &url)], &output)
        })
        .collect();
    for replica in &replicas {
        scratch.ends(replica.start());
    }
    for (number, replica) in (0..).zip(&replicas) {
        is_ready(replica, port + number).await;
    }
    // Without a Redis the default lock is the table.
    let client = client();
    let main = client.get(format!("http://127.0.0.1:{port}/api/rooms/main"));
    let main: serde_json::Value = main
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(main["switches"]["lock"], "table", "{main}");
    assert_eq!(main["switches"]["think_ms"], 100, "{main}");
}

/// Bug 39: a pooler of transactions forgets what belongs to a session, and a replica needs that: limits of its statements,
/// prepared statements, a connection that listens. It is not used, and says why.
#[tokio::test]
async fn behind_a_pooler_of_transactions_it_does_not_start() {
    let scratch = Scratch::new("pooler");
    let direct = shared_postgres_database("pooled").await;
    let pooler = Pooler::start(&scratch, &direct).await;
    let port = free_ports(1);
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["serve", "--name", "A", "--listen", &listen];

    let output = scratch.join("pooled.log");
    let pooled = Process::new(&arguments, &[("DATABASE_URL", &pooler.url)], &output);
    scratch.ends(pooled.start());
    eventually("why it does not start", PATIENCE, async || {
        pooled.assert_alive();
        let said = pooled.output();
        let why = said.contains("waiting for the database: cannot connect")
            && said.contains("unsupported startup parameter");
        why.then_some(()).ok_or(said)
    })
    .await;
    let said = pooled.output();
    assert!(!said.contains("answers at"), "{said}");
    pooled.kill();

    // On the same database, without the pooler.
    let output = scratch.join("direct.log");
    let direct = Process::new(&arguments, &[("DATABASE_URL", &direct)], &output);
    scratch.ends(direct.start());
    is_ready(&direct, port).await;
}

/// A PgBouncer (Debian: pgbouncer) that pools transactions, set up as is usual; it ends with its value.
struct Pooler {
    url: String,
    _process: tokio::process::Child,
}

impl Pooler {
    async fn start(scratch: &Scratch, database: &str) -> Self {
        let port = free_ports(1);
        let url: reqwest::Url = database.parse().expect("a URL");
        let settings = format!(
            "[databases]
             * = host=127.0.0.1 port={} user={} password={}
             [pgbouncer]
             listen_addr = 127.0.0.1
             listen_port = {port}
             unix_socket_dir =
             auth_type = any
             pool_mode = transaction
             ignore_startup_parameters = extra_float_digits
             ",
            url.port().expect("a port"),
            url.username(),
            url.password().unwrap_or_default(),
        );
        let file = scratch.join("pgbouncer.ini");
        std::fs::write(&file, settings).expect("a file");
        let mut command = tokio::process::Command::new("pgbouncer");
        // It refuses to run as root.
        if nix::unistd::Uid::effective().is_root() {
            command.args(["-u", "nobody"]);
        }
        let process = command
            .arg(file)
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("pgbouncer starts (Debian: pgbouncer)");
        scratch.ends(process.id().expect("it runs"));
        eventually("pgbouncer answers", PATIENCE, async || {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            connected.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let mut url = url;
        url.set_port(Some(port)).expect("a port");
        Self {
            url: url.to_string(),
            _process: process,
        }
    }
}

/// Two of one name would each be taken for the other.
#[tokio::test]
async fn a_name_that_is_taken_is_one_line_and_exit_code_2() {
    let world = World::own(Database::Sqlite).start().await;
    let port = free_ports(1);
    let listen = format!("127.0.0.1:{port}");
    let url = world.database_url().to_owned();
    let arguments = [
        "serve",
        "--name",
        "A",
        "--listen",
        &listen,
        "--database",
        &url,
    ];
    refuses_to_start(&arguments, "--name a").await;
    // And the one that was there is there still.
    let replicas = world.get(A, "/api/replicas").await.json();
    assert_eq!(replicas[0]["name"], "A", "{replicas}");
    assert_eq!(replicas[0]["alive"], true, "{replicas}");
}

#[tokio::test]
async fn a_replica_needs_little_memory() {
    let scratch = Scratch::new("memory");
    let url = format!("sqlite:{}", scratch.join("doublebook.db").display());
    let port = free_ports(1);
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["serve", "--name", "A", "--listen", &listen];
    let replica = Process::new(
        &arguments,
        &[("DATABASE_URL", &url)],
        &scratch.join("A.log"),
    );
    let start = std::time::Instant::now();
    scratch.ends(replica.start());
    is_ready(&replica, port).await;

    // A debug build is measured at once, and only to print it.
    let age = if cfg!(debug_assertions) {
        Duration::ZERO
    } else {
        AGE
    };
    let (resident, _) = eventually("the age at which memory is promised", AGE * 3, async || {
        if start.elapsed() < age {
            return Err(format!("{:?} old", start.elapsed()));
        }
        Ok(resident_kb(replica.pid()))
    })
    .await;
    println!("resident after {age:?}: {resident} kB, promised {RESIDENT_MB} MB in a release build");
    assert!(
        cfg!(debug_assertions) || resident <= RESIDENT_MB * 1024,
        "{resident} kB"
    );
}

#[tokio::test]
async fn a_port_in_use_is_one_line_and_exit_code_2() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = taken.local_addr().expect("an address").to_string();
    refuses_to_start(&["serve", "--listen", &listen], &listen).await;
}

#[tokio::test]
async fn health_is_the_readiness_of_the_replica() {
    let world = World::own(Database::Sqlite).start().await;
    let listen = format!("0.0.0.0:{}", world.port(A));
    let asks = async || {
        let output = tokio::process::Command::new(PROGRAM)
            .args(["health", "--listen", &listen])
            .output();
        output.await.expect("it runs")
    };
    assert!(asks().await.status.success());
    world.kills(A);
    let output = asks().await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert!(said.contains("does not answer"), "{said}");
}

#[tokio::test]
async fn wrong_settings_are_one_line_and_exit_code_2() {
    for listen in ["127.0.0.1:70000", "abc", "127.0.0.1"] {
        refuses_to_start(&["serve", "--listen", listen], "listen").await;
    }
    let port = free_ports(1);
    let listen = format!("127.0.0.1:{port}");
    let database = [
        "serve",
        "--listen",
        &listen,
        "--database",
        "mysql://nowhere",
    ];
    refuses_to_start(&database, "database").await;
    let redis = [
        "serve",
        "--listen",
        &listen,
        "--redis-url",
        "http://nowhere",
    ];
    refuses_to_start(&redis, "redis").await;
    refuses_to_start(&["serve", "--colour", "red"], "--colour").await;
}

#[tokio::test]
async fn a_second_up_on_the_same_data_is_one_line_and_exit_code_2() {
    let up = Up::with_servers("none", "sqlite");
    up.starts().await;
    let data = up.data();
    let port = free_ports(2).to_string();
    let data = data.to_str().expect("a readable path");
    let arguments = [
        "up",
        "--port",
        &port,
        "--data-dir",
        data,
        "--servers",
        "none",
    ];
    refuses_to_start(&arguments, "data").await;
}

/// SIGKILL of `up`: its guards, replicas and servers end by themselves.
#[tokio::test]
async fn nothing_of_up_survives_it() {
    let up = Up::with_servers("redis", "sqlite");
    up.starts().await;
    let below = up.descendants();
    let count = |name: &str| {
        below
            .iter()
            .filter(|one| one.command.contains(name))
            .count()
    };
    assert!(count("doublebook") >= 2, "two replicas: {below:?}");
    assert_eq!(count("redis-server"), 1, "{below:?}");
    up.process().kill();
    let took = up.leaves_nothing_of(&below, PATIENCE).await;
    promised(
        "the end of all that `up` had started",
        Duration::from_secs(5),
        took,
    );
}

/// What a replica wrote is there for the next one, whatever its name.
#[tokio::test]
async fn data_outlives_the_replicas() {
    let world = World::own(Database::Sqlite).start().await;
    let room: Room = world.room("outlives").await;
    room.books("Ana", "A1").await.is("booked");
    let before = room.looks_at_rest().await;
    world.kills(A);
    world.starts(A).await;
    assert_eq!(room.looks_at_rest().await, before);
}

/// A replica that was killed has not signed off, and who answers at its address now is somebody else.
#[tokio::test]
async fn a_replica_that_comes_back_under_another_name_is_one_replica() {
    let scratch = Scratch::new("renamed");
    let url = format!("sqlite:{}", scratch.join("doublebook.db").display());
    let port = free_ports(1);
    let listen = format!("127.0.0.1:{port}");
    for name in ["Ana", "Ben"] {
        let arguments = ["serve", "--name", name, "--listen", &listen];
        let log = scratch.join(&format!("{name}.log"));
        let replica = Process::new(&arguments, &[("DATABASE_URL", &url)], &log);
        scratch.ends(replica.start());
        is_ready(&replica, port).await;
        let list = client().get(format!("http://{listen}/api/replicas"));
        let list = list.send().await.expect("an answer");
        let list: serde_json::Value = list.json().await.expect("JSON");
        let names: Vec<_> = list.as_array().into_iter().flatten().collect();
        assert_eq!(names.len(), 1, "{list}");
        assert_eq!(names[0]["name"], name, "{list}");
        replica.kill();
    }
}

async fn is_ready(replica: &Process, port: u16) {
    let client = client();
    eventually("a ready replica", PATIENCE, async || {
        replica.assert_alive();
        match client
            .get(format!("http://127.0.0.1:{port}/readyz"))
            .send()
            .await
        {
            Ok(answer) if answer.status() == 200 => Ok(()),
            other => Err(format!("{other:?}\n{}", replica.tail())),
        }
    })
    .await;
}

/// One line that names what is wrong, exit code 2, and no trace.
async fn refuses_to_start(arguments: &[&str], names: &str) {
    let scratch = Scratch::new("refused");
    let output = tokio::process::Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .current_dir(scratch.path())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.trim().lines().count(), 1, "{arguments:?}: {said}");
    assert!(
        said.to_lowercase().contains(names),
        "{arguments:?} names {names}: {said}"
    );
    assert!(!said.contains("panicked"), "{said}");
}

/// From `/proc`, in kB.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("VmRSS in kB")
}
