//! Connections that are refused, reset, closed, silent, or too many: each is counted by its kind, none is a refusal,
//! and none makes the generator panic or accuse anybody.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::generator::Load;
use crate::support::{A, Database, World, free_ports};

const FLAGS: [&str; 14] = [
    "--workload",
    "seats",
    "--hot",
    "0",
    "--side",
    "lock=table",
    "--rate",
    "30",
    "--duration",
    "2s",
    "--warm-up",
    "0s",
    "--timeout",
    "8s",
];

#[tokio::test]
async fn nobody_listens() {
    let address = format!("http://127.0.0.1:{}", free_ports(1));
    is_counted(address, "refused").await;
}

#[tokio::test]
async fn a_connection_is_reset() {
    // What was sent and not read makes the system reset the connection that is closed.
    let server = Server::start(|stream| async move {
        let _ = stream.peek(&mut [0]).await;
        drop(stream);
    })
    .await;
    is_counted(server.address.clone(), "reset").await;
}

#[tokio::test]
async fn a_connection_is_closed_before_the_answer() {
    let server = Server::start(|mut stream| async move {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
    })
    .await;
    is_counted(server.address.clone(), "closed").await;
}

#[tokio::test]
async fn an_answer_does_not_come() {
    let server = Server::start(|mut stream| async move {
        let mut buffer = Vec::new();
        let _ = stream.read_to_end(&mut buffer).await;
    })
    .await;
    is_counted(server.address.clone(), "timeout").await;
}

#[tokio::test]
async fn an_answer_is_no_http() {
    let server = Server::start(|mut stream| async move {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").await;
    })
    .await;
    is_counted(server.address.clone(), "not-http").await;
}

#[tokio::test]
async fn there_are_too_few_file_descriptors() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = ["--think", "2s", "--rate", "60", "--timeout", "20s"];
    let flags: Vec<_> = without_rate_and_timeout().chain(flags).collect();
    let ran = Load::of(&world, &[A], &flags)
        .with_file_descriptors(48)
        .ends()
        .await;
    ran.exits_with(0).left_no_room(&world).await;
    let side = ran.side("lock=table");
    assert!(
        side["failed"]["file-descriptors"].as_u64() > Some(0),
        "{side}"
    );
    assert!(
        side["verdict"]["unsent"].as_u64() > Some(0),
        "nobody can have read them"
    );
    assert!(
        side["verdict"]["acknowledged"].as_u64() > Some(0),
        "some had one"
    );
    assert_eq!(side["verdict"]["findings"], serde_json::json!({}));
}

/// One replica and one target that fails: half of the requests fail in this way, and no other.
async fn is_counted(failing: String, kind: &str) {
    let world = World::own(Database::Sqlite).start().await;
    let ran = Load::at(&[world.url(A), failing], &FLAGS).ends().await;
    ran.exits_with(0).left_no_room(&world).await;
    let side = ran.side("lock=table");
    let failed = side["failed"].as_object().expect("failures by kind");
    assert_eq!(failed.keys().collect::<Vec<_>>(), [kind], "{side}");
    let (failures, attempts) = (
        ran.figure("lock=table", "failures"),
        side["verdict"]["attempts"].as_f64(),
    );
    assert!(
        (failures - attempts.unwrap_or_default() / 2.0).abs() <= 1.0,
        "{failures} of {attempts:?}"
    );
    assert_eq!(
        side["refused"],
        serde_json::json!({}),
        "no failure is a refusal"
    );
    assert_eq!(side["verdict"]["findings"], serde_json::json!({}));
}

fn without_rate_and_timeout() -> impl Iterator<Item = &'static str> {
    let pairs = FLAGS
        .chunks(2)
        .filter(|pair| !["--rate", "--timeout"].contains(&pair[0]));
    pairs.flatten().copied()
}

/// Listens, and does the same with every connection; ends with its value.
struct Server {
    address: String,
    _listens: JoinSet<()>,
}

impl Server {
    async fn start<F>(serve: fn(TcpStream) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("its address");
        let mut listens = JoinSet::new();
        listens.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream));
            }
        });
        Self {
            address: format!("http://{address}"),
            _listens: listens,
        }
    }
}
