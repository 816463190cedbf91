//! A private DynamoDB Local, its data kept from run to run.
//!
//! It listens on all addresses of the machine, since it has no setting for that; it holds nothing but locks. It would
//! tell its maker that it runs, and write a number for that into the folder it was started in: the first is switched
//! off, and the folder is its own.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use nix::unistd::Pid;

use super::child::Program;
use super::found::{self, Known};
use super::port;
use super::server::{Kind, Place, Server};

/// A running DynamoDB Local.
pub type DynamoDbServer = Server<DynamoDb>;

/// DynamoDB Local, as a kind of server.
#[derive(Debug)]
pub struct DynamoDb;

/// What its clients must name: it asks for a region and for keys, and believes any.
pub const CREDENTIALS: [(&str, &str); 3] = [
    ("AWS_REGION", "local"),
    ("AWS_ACCESS_KEY_ID", "doublebook"),
    ("AWS_SECRET_ACCESS_KEY", "doublebook"),
];

/// Little memory, and the fast compiler only: the thorough one takes longer than such a server lives, and twice the
/// processor time until the first hundred requests are answered.
const JAVA_FLAGS: [&str; 3] = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

#[async_trait]
impl Kind for DynamoDb {
    const KNOWN: Known = Known::DynamoDb;
    const TITLE: &'static str = "DynamoDB Local";
    /// A Java machine starts in two seconds of processor time, which a busy machine may not give it within a minute.
    const START_DEADLINE: Duration = Duration::from_secs(120);

    fn program(program: &Path, place: &Place) -> anyhow::Result<Program> {
        let java = found::on_path("java").context("java is not on PATH")?;
        let libraries = program
            .parent()
            .context("DynamoDBLocal.jar stands in no folder")?
            .join("DynamoDBLocal_lib");
        let data = place.folder.join("dynamodb");
        std::fs::create_dir_all(&data)
            .with_context(|| format!("cannot create {}", data.display()))?;
        Ok(Program::new(java)
            .args(JAVA_FLAGS)
            .arg(format!("-Djava.library.path={}", libraries.display()))
            .arg("-jar")
            .arg(program)
            .args(["-port", &place.port.to_string(), "-sharedDb"])
            .args(["-disableTelemetry", "-dbPath"])
            .arg(data)
            .in_folder(&place.folder)
            .log_to(place.folder.join("dynamodb.log")))
    }

    async fn answers(place: &Place, pid: Pid) -> bool {
        port::is_listened_on_by(place.port, pid) && speaks_http(place.port).await
    }

    fn url(port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }
}

/// Any answer will do: a request without a signature is refused, by a server that is ready.
async fn speaks_http(port: u16) -> bool {
    let Ok(client) = reqwest::Client::builder().no_proxy().build() else {
        return false;
    };
    client.get(DynamoDb::url(port)).send().await.is_ok()
}
