//! A room that was filled some seconds ago, of which PostgreSQL has no statistics yet.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stream::{Stream, since};
use crate::support::{A, Database, Room, World, promised};

/// Most of it is making a megabyte of text. Who looks through all bookings for each seat takes minutes.
const TOLD: Duration = Duration::from_secs(3);

/// The statistics are those of an older room, so that all of the new one is taken for a row or two.
#[tokio::test]
async fn a_room_that_was_just_filled_is_told_soon() {
    let world = World::own(Database::Postgres).start().await;
    let shape = json!({"rows": 100, "columns": 100});
    let old = world.room_of("old", shape.clone()).await;
    fill(&world, &old).await;
    world.changes("ANALYZE").await;
    let room = world.room_of("new", shape).await;
    fill(&world, &room).await;

    let start = Instant::now();
    let stream = Stream::of(&world, A, &room.name).await;
    let event = stream.first("seats", |_| true).await;
    promised("10,000 bookings are told", TOLD, since(start, &event));
    let seats = event.data["seats"].as_array().expect("a list");
    assert_eq!(seats.len(), 10_000);
    assert!(
        seats
            .iter()
            .all(|seat| seat["buyers"] == json!(["Ana"]) && seat["state"] == "sold")
    );
    room.audit().await.is_clean_after(10_000);
}

/// Sells every seat at once, as no client could.
async fn fill(world: &World, room: &Room) {
    let name = &room.name;
    let sold = format!(
        "UPDATE seat
         SET state = 'sold', buyer = 'Ana', version = version + 1
         WHERE room_id = (SELECT room_id FROM room WHERE name = '{name}')"
    );
    assert_eq!(world.changes(&sold).await, 10_000);
    let booked = format!(
        "INSERT INTO booking (booking_id, room_id, attempt, replica, epoch, seat, buyer, version_read, version_written)
         SELECT gen_random_uuid(), seat.room_id, gen_random_uuid(), 'A', room.epoch, seat.name, 'Ana', 0, 1
         FROM seat
         JOIN room ON room.room_id = seat.room_id
         WHERE room.name = '{name}'"
    );
    assert_eq!(world.changes(&booked).await, 10_000);
}
