//! 500 clients hang up at random moments: before their request is whole, while it waits, while it works, as it ends.
//! An attempt runs to its end whoever hangs up, so nothing may be left behind.

use std::time::Duration;

use rand::RngExt;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{A, B, Database, PATIENCE, World, eventually, promised, soak};

under_each_lock!(leaves_nothing_behind_under: redis, table, row);

const CLIENTS: usize = 500;
const SEATS: usize = 40;

async fn leaves_nothing_behind_under(database: Database, lock: &str) {
    let world = World::own(database).start().await;
    let switches = json!({"lock": lock, "think_ms": 10, "wait_ms": 2000, "ttl_ms": 60_000});
    let room = world.room_with("hang-up", switches).await;

    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS * soak() {
        let port = world.port([A, B][client % 2]);
        let request = request_of(&room.name, client);
        clients.spawn(hangs_up_at_random(port, request));
    }
    let hung_up = clients.join_all().await;
    let cut_short = hung_up.iter().filter(|whole| !**whole).count();
    println!(
        "{cut_short} of {} hung up within their request",
        hung_up.len()
    );

    // An attempt that nobody hears of can be seen at its leases, its transactions and its bookings. Which of them was
    // the last one is not told, so the time is counted from the last client, and covers the longest wait, too.
    let ((), took) = eventually("nothing left", PATIENCE, async || {
        let locks = world.locks_held(&room.name).await;
        let left = room.audit().await.leases_left;
        let open = world.has_open_transactions().await;
        if locks.is_empty() && left == Some(0) && !open {
            Ok(())
        } else {
            Err(format!(
                "locks {locks:?}, leases {left:?}, open transactions: {open}"
            ))
        }
    })
    .await;
    promised(
        "nothing was left after the last client hung up",
        Duration::from_millis(2000 + 1000),
        took,
    );

    // Waiters for the one lock of a SQLite file can be seen nowhere, but they are served in order: who came last on a
    // replica is answered when nobody is left before him.
    for replica in [A, B] {
        eventually("the last in line is served", PATIENCE, async || match room
            .books("Last", "A1")
            .on(replica)
            .await
            .outcome()
        {
            outcome if ["booked", "seat-taken"].contains(&outcome.as_str()) => Ok(()),
            outcome => Err(outcome),
        })
        .await;
    }

    let audit = room.audit().await;
    println!(
        "{} of {SEATS} seats were sold to clients that did not listen",
        audit.attempts
    );
    assert!(audit.attempts >= 1, "nobody was served at all");
    assert!(audit.attempts <= SEATS as u64, "{audit:?}");
    audit.is_clean_after(audit.attempts);

    // And every seat can still be asked for, on both replicas.
    let mut sold = 0;
    for seat in 0..SEATS {
        let first = room.books("Zoe", &name_of(seat)).on(A).await;
        if first.outcome() == "seat-taken" {
            sold += 1;
        } else {
            first.is("booked");
        }
        room.books("Yan", &name_of(seat))
            .on(B)
            .await
            .is("seat-taken");
    }
    assert_eq!(sold, audit.attempts, "what was sold stayed sold");
    room.audit().await.is_clean_after(SEATS as u64);
}

/// Whether it sent its whole request.
async fn hangs_up_at_random(port: u16, request: String) -> bool {
    let (start, patience, cut) = {
        let mut random = rand::rng();
        (
            random.random_range(0..1500),
            random.random_range(0..120),
            random.random_range(0..request.len() * 5),
        )
    };
    // The moments are the randomness that this test is about; nothing is waited for.
    tokio::time::sleep(Duration::from_millis(start)).await;
    let sent = &request.as_bytes()[..cut.min(request.len())];
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    if stream.write_all(sent).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(patience)).await;
    }
    sent.len() == request.len()
}

fn request_of(room: &str, client: usize) -> String {
    let body =
        json!({"seat": name_of(client % SEATS), "buyer": format!("Client {client}")}).to_string();
    format!(
        "POST /api/rooms/{room}/bookings HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn name_of(seat: usize) -> String {
    format!("{}{}", ["A", "B", "C", "D", "E"][seat / 8], seat % 8 + 1)
}
