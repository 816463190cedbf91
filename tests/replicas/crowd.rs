//! Fifty buyers and ten seats: buyer i asks for seat i mod 10.

use serde_json::json;

use crate::support::{A, B, Database, PATIENCE, Room, World, eventually};

on_both_databases!(oversells_without_a_lock);

under_each_lock!(gets_exactly_ten_seats_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);
under_each_lock!(that_waits_takes_no_connection_from_others_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);

const BUYERS: usize = 50;
const SEATS: usize = 10;

async fn oversells_without_a_lock(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "think_ms": 200});
    let room = world.room_with("crowd", switches).await;

    let booked = all_ask(&room).await.booked;
    println!("{booked} of {BUYERS} buyers got one of {SEATS} seats");
    assert!(booked > SEATS, "{booked}");
    let audit = room.audit().await;
    assert_eq!(audit.attempts, booked as u64);
    let sold: usize = audit
        .seats_sold_twice
        .iter()
        .map(|seat| seat.bookings.len())
        .sum();
    let once = SEATS - audit.seats_sold_twice.len();
    assert_eq!(
        sold + once,
        booked,
        "every booking is accounted for: {audit:?}"
    );
}

async fn gets_exactly_ten_seats_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    // All fifty may queue for one lock, on a machine that is busy.
    let switches = json!({"lock": lock, "think_ms": 20, "ttl_ms": 20_000, "wait_ms": 60_000});
    let room = world.room_with("crowd", switches).await;

    let crowd = all_ask(&room).await;
    assert_eq!((crowd.booked, crowd.taken), (SEATS, BUYERS - SEATS));
    room.audit().await.is_clean_after(SEATS as u64);
}

/// Bug 38: fifty wait on one replica, which has fewer connections of any kind. Who holds their lock can commit, others can
/// read, and who needs no lock can book. (On SQLite `row` is a lock on the file, so nobody else can book there.)
async fn that_waits_takes_no_connection_from_others_under(database: Database, lock: &str) {
    let world = World::own(database).with(lock).start().await;
    let switches = json!({"lock": lock, "ttl_ms": 20_000, "wait_ms": 60_000});
    let room = world.room_with("crowd", switches).await;
    let other = json!({"locking": false, "wait_ms": 1000});
    let other = world.room_with("other", other).await;

    let ana = room.books("Ana", "A1");
    let ana = ana.pausing_at("after_read").at_gate("ana").starts();
    room.one_waits_at_gate("ana", A, "after_read").await;
    let crowd: Vec<_> = (0..BUYERS)
        .map(|buyer| room.books(&format!("Buyer {buyer}"), "A1").starts())
        .collect();
    let all = format!("doublebook_attempts_under_way {}", BUYERS + 1);
    eventually("all wait", PATIENCE, async || {
        let metrics = world.get(A, "/metrics").await.text;
        metrics.contains(&all).then_some(()).ok_or(metrics)
    })
    .await;
    room.looks().await;
    if (database, lock) != (Database::Sqlite, "row") {
        other.books("Ben", "A1").await.is("booked");
    }
    room.opens("ana").await;

    ana.answer().await.is("booked");
    for attempt in crowd {
        attempt.answer().await.is("seat-taken");
    }
    room.audit().await.is_clean_after(1);
}

struct Crowd {
    booked: usize,
    taken: usize,
}

async fn all_ask(room: &Room) -> Crowd {
    let underway: Vec<_> = (0..BUYERS)
        .map(|buyer| {
            let (row, column) = (buyer % SEATS / 5, buyer % 5 + 1);
            let seat = format!("{}{column}", ["A", "B"][row]);
            // Each seat is asked for on both replicas.
            let replica = if (buyer / SEATS).is_multiple_of(2) {
                A
            } else {
                B
            };
            let name = format!("Buyer {buyer}");
            room.books(&name, &seat).on(replica).starts()
        })
        .collect();
    let mut crowd = Crowd {
        booked: 0,
        taken: 0,
    };
    for attempt in underway {
        match attempt.answer().await.outcome().as_str() {
            "booked" => crowd.booked += 1,
            "seat-taken" => crowd.taken += 1,
            other => panic!("neither booked nor taken: {other}"),
        }
    }
    crowd
}
