//! What an open page costs: bookings per second through two replicas, with a live stream open on one, and without.
//!
//! `cargo bench --bench open_page`, on a machine that does nothing else. Sixteen clients book seats that nobody else
//! wants, through both replicas, under the lock `redis`; blocks with and without a page alternate, each in a room of its
//! own as large as rooms can be, and which of the two comes first alternates as well. The stream holds the steps of both
//! replicas, and it is read here, as a browser would on a laptop, so what that costs is counted against it. Prints the medians and their ratio; ends with 1 when it is below what is
//! promised.

#[macro_use]
#[path = "../tests/replicas/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the harness is shared, and each of its users needs another part of it"
)]
mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use support::{A, B, Database, PATIENCE, Replica, Room, World, eventually};

/// Pairs of blocks, each one with a page and one without.
const PAIRS: usize = 9;

/// Who book at the same time, half of them through each replica.
const CLIENTS: usize = 16;

/// A block's room; each of its seats is booked once.
const ROWS: usize = 100;
const COLUMNS: usize = 100;

/// The least that is promised of the throughput without a page.
const PROMISED: f64 = 0.95;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let mut kept = true;
    for database in [Database::Postgres, Database::Sqlite] {
        kept &= promise_is_kept_on(database).await;
    }
    if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn promise_is_kept_on(database: Database) -> bool {
    let world = World::own(database).start().await;
    // The first attempts open connections and fill caches.
    block(&world, false).await;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for read in [pair % 2 == 0, pair % 2 != 0] {
            let rate = block(&world, read).await;
            let page = if read { "with" } else { "without" };
            eprintln!("{database:?}, {page} an open page: {rate:.0} bookings per second");
            if read { &mut with } else { &mut without }.push(rate);
        }
    }
    println!("{database:?}, bookings per second with an open page:    {with:.0?}");
    println!("{database:?}, bookings per second without an open page: {without:.0?}");
    let (with, without) = (median(with), median(without));
    let ratio = with / without;
    let kept = ratio >= PROMISED;
    println!(
        "{database:?}: medians {with:.0} with an open page and {without:.0} without, ratio {ratio:.3}, promised {PROMISED}: {}",
        if kept { "kept" } else { "NOT KEPT" }
    );
    kept
}

/// Bookings per second in a room of its own.
async fn block(world: &World, read: bool) -> f64 {
    let shape = json!({"rows": ROWS, "columns": COLUMNS});
    let room = world.room_of("bench", shape).await;
    room.switches(json!({"lock": "redis", "think_ms": 0})).await;
    let page = match read {
        true => Some(Page::open(world, A, &room).await),
        false => None,
    };
    let rate = books_all_seats(&room).await;
    if let Some(page) = page {
        page.close().await;
    }
    nobody_watches(world).await;
    let audit = room.audit().await;
    audit.is_clean_after(u64::try_from(ROWS * COLUMNS).expect("a count"));
    rate
}

async fn books_all_seats(room: &Room) -> f64 {
    let seats = room.looks().await["seats"].clone();
    let seats: Vec<String> = (seats.as_array().expect("a list").iter())
        .map(|seat| seat["seat"].as_str().expect("a name").to_owned())
        .collect();
    let (seats, next) = (Arc::new(seats), Arc::new(AtomicUsize::new(0)));
    let start = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let (room, seats, next) = (room.clone(), Arc::clone(&seats), Arc::clone(&next));
        let through = [A, B][client % 2];
        tokio::spawn(async move {
            let buyer = format!("Buyer {client}");
            while let Some(seat) = seats.get(next.fetch_add(1, Ordering::Relaxed)) {
                room.books(&buyer, seat).on(through).await.is("booked");
            }
        })
    });
    for client in join_all(clients).await {
        client.expect("each booking succeeds");
    }
    seats.len() as f64 / start.elapsed().as_secs_f64()
}

/// An open page: a stream that is read as it comes.
struct Page {
    heard: Arc<Heard>,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Heard {
    lines: AtomicUsize,
    /// Seats that were told as sold.
    sold: AtomicUsize,
}

impl Page {
    /// Opens the stream and waits until it has begun to tell.
    async fn open(world: &World, replica: Replica, room: &Room) -> Self {
        let path = format!("/api/rooms/{}/live", room.name);
        let stream = world.request(replica, Method::GET, &path).send().await;
        let stream = stream.expect("a stream");
        assert_eq!(stream.status(), 200);
        let heard = Arc::default();
        let reading = tokio::spawn(read(stream, Arc::clone(&heard)));
        let page = Self { heard, reading };
        page.hears("its first line", |heard| &heard.lines, 1).await;
        page
    }

    /// Closes the page once it has heard of all seats.
    async fn close(self) {
        self.hears("of all seats", |heard| &heard.sold, ROWS * COLUMNS)
            .await;
        self.reading.abort();
    }

    async fn hears(&self, what: &str, of: fn(&Heard) -> &AtomicUsize, count: usize) {
        eventually(
            &format!("the page hears {what}"),
            PATIENCE,
            async || match of(&self.heard).load(Ordering::Relaxed) {
                heard if heard < count => Err(format!("{heard} of {count}")),
                _ => Ok(()),
            },
        )
        .await;
    }
}

async fn read(mut stream: Response, heard: Arc<Heard>) {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = stream.chunk().await {
        text.extend_from_slice(&chunk);
        while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let sold = String::from_utf8_lossy(&line).matches("\"sold\"").count();
            heard.sold.fetch_add(sold, Ordering::Relaxed);
            heard.lines.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until no replica does any work for a page: a room is watched for some seconds more.
async fn nobody_watches(world: &World) {
    for replica in [A, B] {
        eventually("nobody watches", PATIENCE, async || {
            let watched: Value = world.get(replica, "/peer/readers").await.json();
            if watched["rooms"] == 0 && watched["feeds"] == 0 {
                Ok(())
            } else {
                Err(watched.to_string())
            }
        })
        .await;
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
