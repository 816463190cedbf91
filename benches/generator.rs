//! Whether the generator is the bottleneck: its requests per second on `GET /healthz` beside those of `wrk`, with the
//! same connections to the same replica, in runs that alternate.
//!
//!     cargo bench --bench generator
//!
//! It needs `wrk` (Debian: wrk). It prints every run and the medians, and fails below half of what wrk does.

use std::net::TcpListener;
use std::ops::ControlFlow;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use doublebook::load::client::Client;
use doublebook::load::drive;
use doublebook::load::generator::{self, Usage};
use doublebook::load::measure::{Measures, Outcome, Sample, percentile};
use doublebook::load::settings::Target;
use hyper::Method;
use tokio_util::sync::CancellationToken;

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(4);

/// The least share of what wrk does.
const LEAST: f64 = 0.5;

/// How long the replica may take to be ready.
const START_LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    // As `load` does.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(generator::threads())
        .enable_all()
        .build()
        .expect("threads can be started")
        .block_on(compare())
}

async fn compare() -> ExitCode {
    let replica = Replica::start();
    replica.is_ready().await;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        theirs.push(wrk(&replica));
        let (rate, share, p99) = generator(&replica).await;
        ours.push(rate);
        println!(
            "round {round}: wrk {:.0}/s, generator {rate:.0}/s with {share:.0} % of all processors, p99 {p99:.2} ms",
            theirs[round - 1]
        );
    }
    let (theirs, ours) = (median(theirs), median(ours));
    let ratio = ours / theirs;
    println!(
        "median: wrk {theirs:.0}/s, generator {ours:.0}/s: {ratio:.2} of it, at least {LEAST} are promised"
    );
    if ratio >= LEAST {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One replica on a database of its own.
struct Replica {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Replica {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let child = Command::new(env!("CARGO_BIN_EXE_doublebook"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .env("DOUBLEBOOK_DATA_DIR", folder.path())
            .env_remove("DATABASE_URL")
            .env_remove("REDIS_URL")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the replica starts");
        Self {
            child,
            port,
            _folder: folder,
        }
    }

    fn target(&self) -> Target {
        let url = format!("http://127.0.0.1:{}", self.port);
        url.parse().expect("an address")
    }

    async fn is_ready(&self) {
        let client = self.client().await;
        let deadline = Instant::now() + START_LIMIT;
        while !matches!(client.send(0, Method::GET, "/readyz", None, START_LIMIT).await, Ok(answer) if answer.status == 200)
        {
            assert!(Instant::now() < deadline, "the replica is not ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn client(&self) -> Client {
        let client = Client::new(&[self.target()]).await;
        client.expect("an address")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests per second of wrk.
fn wrk(replica: &Replica) -> f64 {
    let output = Command::new("wrk")
        .args(["--threads", "2", "--connections", &CONNECTIONS.to_string()])
        .args(["--duration", &format!("{}s", ROUND.as_secs())])
        .arg(format!("{}/healthz", replica.target()))
        .output()
        .expect("wrk runs (Debian: wrk)");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    let rate = line.and_then(|rate| rate.trim().parse().ok());
    rate.unwrap_or_else(|| panic!("wrk tells no rate: {text}"))
}

/// Requests per second of the generator, its share of all processors in percent, and the p99 that it measured.
async fn generator(replica: &Replica) -> (f64, f64, f64) {
    let client = Arc::new(replica.client().await);
    let measures = Arc::new(Mutex::new(Measures::new(ROUND)));
    let (usage, recorded) = (Usage::begin(), Arc::clone(&measures));
    let began = Instant::now();
    drive::clients(
        CONNECTIONS,
        ROUND,
        &CancellationToken::new(),
        move |now, at| {
            let (client, measures) = (Arc::clone(&client), Arc::clone(&measures));
            async move {
                let answer = client
                    .send(0, Method::GET, "/healthz", None, START_LIMIT)
                    .await;
                let response = now.elapsed();
                let sample = Sample {
                    at,
                    response,
                    service: response,
                    outcome: answer
                        .map_or_else(|failure| Outcome::Failed(failure.kind), |_| Outcome::Done),
                    timing: None,
                };
                measures.lock().expect("nobody panicked").record(&sample);
                ControlFlow::Continue(())
            }
        },
    )
    .await;
    let seconds = began.elapsed().as_secs_f64();
    let recorded = recorded.lock().expect("nobody panicked");
    assert_eq!(recorded.failed(), 0, "{:?}", recorded.failed);
    let p99 = percentile(&recorded.response, 99.0).unwrap_or_default();
    (recorded.done as f64 / seconds, usage.ends().percent(), p99)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
