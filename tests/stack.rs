//! Real servers start, answer, end and start again, and nothing outlives its owner.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use doublebook::stack::child::{Program, StopSignal};
use doublebook::stack::{Kind, Launcher, PostgresServer, RedisServer, Server, redlock};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::sleep;

/// At least three times what a guard promises to whoever is left behind (2 s).
const END_DEADLINE: Duration = Duration::from_secs(8);

fn launcher() -> Launcher {
    Launcher::new(env!("CARGO_BIN_EXE_doublebook"))
}

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

/// A folder that every user can enter: PostgreSQL's data stands in it, whoever we are.
fn open_folder() -> TempDir {
    folder_with_mode(0o755)
}

fn folder_with_mode(mode: u32) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    folder
}

/// Gone, or dead and only waiting for the system to take note.
fn is_gone(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.map_or(true, |status| status.contains("State:\tZ"))
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < END_DEADLINE,
            "{what}: not within {END_DEADLINE:?}"
        );
        sleep(Duration::from_millis(20)).await;
    }
    println!("{what}: {:?}", start.elapsed());
}

#[tokio::test]
async fn a_guard_passes_on_the_exit_code() {
    let mut ended = launcher().spawn(&shell("exit 7")).await.unwrap();
    assert_eq!(ended.wait().await.unwrap().code(), Some(7));

    let mut killed = launcher().spawn(&shell("kill -9 $$")).await.unwrap();
    assert_eq!(killed.wait().await.unwrap().code(), Some(128 + 9));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let error = launcher()
        .spawn(&Program::new("no-such-program"))
        .await
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("no-such-program"),
        "{error:#}"
    );
}

#[tokio::test]
async fn stopping_sends_the_chosen_signal() {
    let folder = TempDir::new().unwrap();
    let script = r#"trap "exit 3" TERM; trap "exit 4" INT; : >ready; while :; do sleep 0.05; done"#;
    for (signal, code) in [(StopSignal::Term, 3), (StopSignal::Int, 4)] {
        let ready = folder.path().join("ready");
        let program = shell(script).in_folder(folder.path()).stop_signal(signal);
        let mut process = launcher().spawn(&program).await.unwrap();
        until("the shell has set its traps", || ready.exists()).await;
        fs::remove_file(ready).unwrap();

        process.stop().await.unwrap();
        assert_eq!(process.wait().await.unwrap().code(), Some(code));
    }
}

#[tokio::test]
async fn a_dropped_program_ends_even_if_it_ignores_its_stop_signal() {
    let folder = TempDir::new().unwrap();
    let ready = folder.path().join("ready");
    let deaf =
        shell(r#"trap "" TERM; : >ready; while :; do sleep 0.05; done"#).in_folder(folder.path());
    let process = launcher().spawn(&deaf).await.unwrap();
    let pid = process.pid();
    until("the shell has set its trap", || ready.exists()).await;

    drop(process);
    until("a deaf program ends", || is_gone(pid)).await;
}

#[tokio::test]
async fn a_dropped_program_ends_even_if_it_is_frozen() {
    let mut process = launcher()
        .spawn(&Program::new("sleep").arg("1000"))
        .await
        .unwrap();
    let pid = process.pid();
    process.signal(Signal::SIGSTOP).unwrap();
    drop(process);
    until("a frozen program ends", || is_gone(pid)).await;
}

#[tokio::test]
async fn an_owner_killed_with_sigkill_takes_its_program_along() {
    // The owner is a shell that alone holds the write end of the guard's pipe, and dies without a word.
    let folder = TempDir::new().unwrap();
    let script =
        r#"mkfifo lifeline; exec 3<>lifeline; "$0" guard -- sleep 1000 <lifeline 3>&- >pid & wait"#;
    let mut owner = tokio::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_doublebook")])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    let pid_file = folder.path().join("pid");
    until("the guard announces its program", || {
        pid_in(&pid_file).is_some()
    })
    .await;
    let program = pid_in(&pid_file).unwrap();
    assert!(!is_gone(program));

    owner.start_kill().unwrap();
    assert_eq!(owner.wait().await.unwrap().signal(), Some(9));
    until("the program of a killed owner ends", || is_gone(program)).await;
}

fn pid_in(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    text.trim().parse().ok().map(Pid::from_raw)
}

#[tokio::test]
async fn a_killed_guard_leaves_nothing_behind() {
    let mut process = launcher()
        .spawn(&Program::new("sleep").arg("1000"))
        .await
        .unwrap();
    let program = process.pid();
    kill(parent_of(program), Signal::SIGKILL).unwrap();
    assert_eq!(process.wait().await.unwrap().signal(), Some(9));
    until("the program of a killed guard ends", || is_gone(program)).await;
}

fn parent_of(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    Pid::from_raw(parent.trim().parse().unwrap())
}

#[tokio::test]
async fn redis_starts_answers_stops_and_starts_again_empty() {
    let folder = TempDir::new().unwrap();
    let mut redis = RedisServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    let url = redis.url();
    set(&url, "seat", "A1").await;
    assert_eq!(get(&url, "seat").await.as_deref(), Some("A1"));

    let first = redis.pid();
    redis.stop().await.unwrap();
    assert!(is_gone(first));
    redis.start_again().await.unwrap();
    assert_eq!(redis.url(), url);
    assert_eq!(get(&url, "seat").await, None);

    let second = redis.pid();
    redis.kill().await.unwrap();
    until("a killed Redis is gone", || is_gone(second)).await;
    redis.start_again().await.unwrap();
    set(&url, "seat", "A2").await;
}

/// What their data is after it, the contract of their lock systems tests.
async fn a_lock_server_stops_dies_and_comes_back<K: Kind>() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::<K>::start(&launcher(), folder.path())
        .await
        .unwrap();
    let url = server.url();
    let first = server.pid();
    server.stop().await.unwrap();
    assert!(is_gone(first));
    server.start_again().await.unwrap();
    assert_eq!(server.url(), url);

    let second = server.pid();
    server.kill().await.unwrap();
    until("a killed server is gone", || is_gone(second)).await;
    server.start_again().await.unwrap();

    // The next run on the same folder begins while the last one's guard is still at work.
    let third = server.pid();
    drop(server);
    let mut next = Server::<K>::start(&launcher(), folder.path())
        .await
        .unwrap();
    until("a dropped server is gone", || is_gone(third)).await;
    next.stop().await.unwrap();
}

#[tokio::test]
async fn etcd_stops_dies_and_comes_back() {
    a_lock_server_stops_dies_and_comes_back::<doublebook::stack::etcd::Etcd>().await;
}

#[tokio::test]
async fn zookeeper_stops_dies_and_comes_back() {
    a_lock_server_stops_dies_and_comes_back::<doublebook::stack::zookeeper::ZooKeeper>().await;
}

#[tokio::test]
async fn dynamodb_local_stops_dies_and_comes_back() {
    a_lock_server_stops_dies_and_comes_back::<doublebook::stack::dynamodb::DynamoDb>().await;
}

#[tokio::test]
async fn the_nodes_of_a_redlock_know_nothing_of_each_other() {
    let folder = TempDir::new().unwrap();
    let mut nodes = redlock::start(&launcher(), folder.path()).await.unwrap();
    assert_eq!(nodes.len(), redlock::NODES);
    set(&nodes[0].url(), "seat", "A1").await;
    for node in &nodes[1..] {
        assert_eq!(get(&node.url(), "seat").await, None);
    }
    for node in &mut nodes {
        node.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_paused_redis_is_silent_and_goes_on_when_resumed() {
    let folder = TempDir::new().unwrap();
    let mut redis = RedisServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    let url = redis.url();
    set(&url, "seat", "A1").await;

    redis.pause().unwrap();
    let silence = tokio::time::timeout(Duration::from_millis(300), get(&url, "seat")).await;
    assert!(silence.is_err(), "a paused Redis answered {silence:?}");
    redis.resume().unwrap();
    assert_eq!(get(&url, "seat").await.as_deref(), Some("A1"));
}

async fn set(url: &str, key: &str, value: &str) {
    let mut redis = connect_redis(url).await;
    redis::cmd("SET")
        .arg(key)
        .arg(value)
        .exec_async(&mut redis)
        .await
        .unwrap();
}

async fn get(url: &str, key: &str) -> Option<String> {
    redis::cmd("GET")
        .arg(key)
        .query_async(&mut connect_redis(url).await)
        .await
        .unwrap()
}

async fn connect_redis(url: &str) -> redis::aio::MultiplexedConnection {
    // The default deadlines are shorter than a slow machine may need.
    let patient = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let client = redis::Client::open(url).unwrap();
    client
        .get_multiplexed_async_connection_with_config(&patient)
        .await
        .unwrap()
}

#[tokio::test]
async fn postgres_starts_answers_and_keeps_its_data() {
    let folder = open_folder();
    let mut postgres = PostgresServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    let url = postgres.url();
    execute(
        &url,
        "CREATE TABLE seat (name TEXT PRIMARY KEY); INSERT INTO seat VALUES ('A1')",
    )
    .await;
    let other = postgres.create_database("another_one").await.unwrap();
    execute(&other, "CREATE TABLE seat (name TEXT)").await;
    assert_eq!(
        postgres.create_database("another_one").await.unwrap(),
        other
    );
    assert!(postgres.create_database("no; plain name").await.is_err());

    let first = postgres.pid();
    postgres.stop().await.unwrap();
    assert!(is_gone(first));
    postgres.start_again().await.unwrap();
    assert_eq!(postgres.url(), url);
    assert_eq!(seats(&url).await, 1);

    // A crash leaves `postmaster.pid`, and processes that hold the shared memory for a moment.
    postgres.kill().await.unwrap();
    postgres.start_again().await.unwrap();
    assert_eq!(seats(&url).await, 1);

    // The next run on the same folder begins while the last one's guard is still at work.
    drop(postgres);
    let mut next = PostgresServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    assert_eq!(seats(&next.url()).await, 1);
    next.stop().await.unwrap();
}

#[tokio::test]
async fn a_stale_pid_file_does_not_keep_postgres_from_starting() {
    let folder = open_folder();
    let mut postgres = PostgresServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    let pid_file = folder.path().join("postgres/data/postmaster.pid");
    let file_of_the_killed = fs::read_to_string(&pid_file).unwrap();
    let killed = postgres.pid().to_string();
    postgres.kill().await.unwrap();

    // The number belongs to a stranger now, of the same user, as PostgreSQL would mind.
    let mut stranger = Program::new("sleep").arg("1000");
    if Uid::effective().is_root() {
        let owner = fs::metadata(&pid_file).unwrap();
        stranger = stranger.run_as(
            Uid::from_raw(owner.uid()),
            nix::unistd::Gid::from_raw(owner.gid()),
        );
    }
    let stranger = launcher().spawn(&stranger).await.unwrap();
    let stale = file_of_the_killed.replacen(&killed, &stranger.pid().to_string(), 1);
    fs::write(&pid_file, stale).unwrap();

    postgres.start_again().await.unwrap();
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn postgres_never_runs_as_root_and_asks_for_its_password() {
    let folder = open_folder();
    let mut postgres = PostgresServer::start(&launcher(), folder.path())
        .await
        .unwrap();
    assert!(!owner_of(postgres.pid()).is_root());
    assert_eq!(postgres.stands_elsewhere(), None);

    let stranger = format!(
        "postgres://doublebook:wrong@127.0.0.1:{}/doublebook",
        postgres.port()
    );
    assert!(PgConnection::connect(&stranger).await.is_err());
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn where_its_user_cannot_go_postgres_stands_elsewhere() {
    if !Uid::effective().is_root() {
        return println!(
            "an ordinary user runs PostgreSQL as themselves, who can reach their own folder"
        );
    }
    let closed = folder_with_mode(0o700);
    let mut postgres = PostgresServer::start(&launcher(), closed.path())
        .await
        .unwrap();
    let home = postgres.stands_elsewhere().unwrap().to_owned();
    let metadata = fs::metadata(&home).unwrap();
    assert!(home.starts_with("/var/tmp"), "{}", home.display());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    assert_ne!(metadata.uid(), 0);
    execute(&postgres.url(), "CREATE TABLE seat (name TEXT)").await;
    postgres.stop().await.unwrap();

    let mut again = PostgresServer::start(&launcher(), closed.path())
        .await
        .unwrap();
    assert_eq!(again.stands_elsewhere(), Some(home.as_path()));
    assert_eq!(seats(&again.url()).await, 0);
    again.stop().await.unwrap();
    fs::remove_dir_all(home).unwrap();
}

fn owner_of(pid: Pid) -> Uid {
    Uid::from_raw(fs::metadata(format!("/proc/{pid}")).unwrap().uid())
}

async fn execute(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn seats(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let seats = sqlx::query_scalar("SELECT count(*) FROM seat")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    seats
}
