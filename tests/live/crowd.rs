//! Many readers, some of whom never read.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stream::{Stream, path};
use crate::support::{A, B, Database, PATIENCE, Room, World, eventually, promised};

/// Streams that are read, and as many that are not.
const EACH: usize = 100;

/// Twenty bookings a row, under names of the greatest length: their steps alone are some megabytes, more than a
/// connection takes that nobody reads.
const BOOKED_ROWS: u8 = 20;

/// What the replica may grow by. A copy of what is told for each reader who does not read would be ten times as much.
const GROWTH_KB: u64 = 40 * 1024;

/// More than is kept of a stream, and what a connection takes that nobody reads.
const ENOUGH_TO_LOSE: usize = 4_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_who_never_read_cost_little_and_slow_nobody() {
    let world = World::own(Database::Sqlite).start().await;
    let shape = json!({"rows": 26, "columns": 30});
    let room = world.room_of("crowd", shape).await;
    let first = Stream::settled(&world, A, &room.name).await;
    let (mut deaf, mut readers) = (Vec::new(), Vec::new());
    for _ in 0..EACH {
        deaf.push(connects(&world, &room.name).await);
        let reader = connects(&world, &room.name).await;
        readers.push(tokio::spawn(reads_until(reader, r#""seat":"A30""#)));
    }
    has_readers(&world, 2 * EACH + 1).await;
    let before = memory_kb(&world);

    for row in 0..BOOKED_ROWS {
        books_a_row(&room, row).await;
    }
    room.books("Last", "A30").on(B).await.is("booked");
    let start = Instant::now();
    let (mut slowest, mut least) = (Duration::ZERO, usize::MAX);
    for reader in readers {
        let (read, at) = reader.await.expect("it reads");
        slowest = slowest.max(at.saturating_duration_since(start));
        least = least.min(read);
    }
    let grown = memory_kb(&world).saturating_sub(before);
    println!(
        "each was told {least} bytes; {EACH} who read and {EACH} who do not: {grown} kB more memory"
    );
    let promise = Duration::from_secs(1);
    promised("the slowest reader sees the last booking", promise, slowest);
    assert!(first.all("gap").is_empty());
    assert!(least > 2_000_000, "enough to fill the connections: {least}");
    assert!(grown < GROWTH_KB, "{grown} kB");
    has_readers(&world, EACH + 1).await;
    drop(deaf);
    has_readers(&world, 1).await;
}

/// A reader that lost its place hears so as soon as it reads again, and its stream ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_too_slow_hears_of_the_gap() {
    let world = World::own(Database::Sqlite).start().await;
    let shape = json!({"rows": 26, "columns": 30});
    let room = world.room_of("slow", shape).await;
    let slow = connects(&world, &room.name).await;
    let fast = Stream::settled(&world, A, &room.name).await;
    // Until what it wants has made room: more than is kept, and what its connection takes.
    for row in (0..26).cycle() {
        books_a_row(&room, row).await;
        if fast.bytes() > ENOUGH_TO_LOSE {
            break;
        }
        if row == 25 {
            room.resets().await;
        }
    }
    let (read, _) = reads_until(slow, "event: gap\ndata: {}\n\n").await;
    println!("read {read} bytes of {} before the gap", fast.bytes());
    assert!(fast.all("gap").is_empty());
    has_readers(&world, 1).await;
}

/// Places are few, and given back.
#[tokio::test]
async fn there_are_places_for_so_many_readers_and_no_more() {
    let world = World::own(Database::Sqlite).start().await;
    let room = world.room("places").await;
    let mut readers = Vec::new();
    for _ in 0..500 {
        readers.push(connects(&world, &room.name).await);
    }
    let answer = world.get(A, &path(&room.name)).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    answer.is("too-many-readers");
    room.books("Ana", "A1").on(A).await.is("booked");
    drop(readers.pop());
    has_readers(&world, 499).await;
    let last = Stream::of(&world, A, &room.name).await;
    last.first("seats", |_| true).await;
}

/// Books twenty seats of a row at once, on both replicas.
async fn books_a_row(room: &Room, row: u8) {
    let buyer = "\u{1f9d1}".repeat(64);
    let bookings = (1..=20).map(|column| {
        let seat = format!("{}{column}", char::from(b'A' + row));
        let booking = room.books(&buyer, &seat);
        let booking = booking.on(if column % 2 == 0 { A } else { B });
        booking.into_future()
    });
    for answer in join_all(bookings).await {
        answer.is("booked");
    }
}

/// A connection that asked for the stream, has its place, and was read no further than its status.
async fn connects(world: &World, room: &str) -> TcpStream {
    let address = ("127.0.0.1", world.port(A));
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    let path = path(room);
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("it is sent");
    let mut status = [0; 12];
    let answered = connection.read_exact(&mut status).await;
    answered.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
    connection
}

/// Reads until this text; tells how much that was, and when.
async fn reads_until(mut connection: TcpStream, text: &str) -> (usize, Instant) {
    let mut buffer = vec![0; 64 * 1024];
    let (mut read, mut tail) = (0, Vec::new());
    let reading = async {
        loop {
            let more = connection.read(&mut buffer).await.expect("it is read");
            assert_ne!(more, 0, "the stream ended");
            read += more;
            tail.extend_from_slice(&buffer[..more]);
            if String::from_utf8_lossy(&tail).contains(text) {
                return (read, Instant::now());
            }
            tail.drain(..tail.len().saturating_sub(text.len()));
        }
    };
    let reading = tokio::time::timeout(PATIENCE * 3, reading);
    reading.await.expect("it comes")
}

/// Waits until replica A serves so many streams.
async fn has_readers(world: &World, count: usize) {
    eventually("so many readers", PATIENCE, async || {
        let readers = world.get(A, "/peer/readers").await.json()["readers"].clone();
        if readers == count {
            Ok(())
        } else {
            Err(readers.to_string())
        }
    })
    .await;
}

/// What replica A has in memory.
fn memory_kb(world: &World) -> u64 {
    let status = format!("/proc/{}/status", world.process(A).pid());
    let status = std::fs::read_to_string(status).expect("it is running");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a line");
    let number = line.split_whitespace().next().expect("a number");
    number.parse().expect("a number")
}
