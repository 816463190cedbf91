//! Pages that come back.

use serde_json::Value;

use crate::stream::{Stream, number, of_seat};
use crate::support::{A, B, Database, World};

on_both_databases!(
    who_comes_back_misses_nothing,
    who_comes_back_with_an_unknown_id_is_told_so,
);

async fn who_comes_back_misses_nothing(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("resume").await;
    let whole = Stream::settled(&world, A, &room.name).await;
    let broken = Stream::settled(&world, A, &room.name).await;
    room.books("Ana", "A1").on(A).await.is("booked");
    broken
        .first("seats", |data| of_seat(data, "A1")["state"] == "sold")
        .await;
    let mut ids: Vec<u64> = ids(&broken);
    let last = broken.last_id();
    drop(broken);

    // While it is away, on both replicas.
    room.books("Ben", "A2").on(A).await.is("booked");
    room.books("Cem", "A3").on(B).await.is("booked");
    whole
        .first("seats", |data| of_seat(data, "A3")["state"] == "sold")
        .await;

    let back = Stream::again(&world, A, &room.name, &last).await;
    back.first("seats", |data| of_seat(data, "A3")["state"] == "sold")
        .await;
    back.first("ended", |_| true).await;
    assert_eq!(back.events()[0].name, "hello");
    assert!(back.all("gap").is_empty());
    assert_eq!(self::ids(&back)[0], number(&last) + 1);
    ids.extend(self::ids(&back));
    let expected: Vec<u64> = (ids[0]..).take(ids.len()).collect();
    assert_eq!(ids, expected, "each event once, none missing");
}

fn ids(stream: &Stream) -> Vec<u64> {
    let events = stream.events();
    events
        .iter()
        .filter_map(|event| event.id.as_deref().map(number))
        .collect()
}

/// An id of the other replica, of a stream that is over, or of nobody.
async fn who_comes_back_with_an_unknown_id_is_told_so(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("unknown-id").await;
    room.books("Ana", "A1").on(A).await.is("booked");
    let here = Stream::settled(&world, A, &room.name).await;
    let there = Stream::settled(&world, B, &room.name).await.last_id();
    let (stream, _) = there.split_once('-').expect("an id");
    let future = format!(
        "{}-999999",
        here.last_id().split('-').next().expect("an id")
    );
    for id in [there.as_str(), stream, &future, "nonsense", "0-0"] {
        let back = Stream::again(&world, A, &room.name, id).await;
        back.first("gap", |_| true).await;
        let names: Vec<String> = back.events().into_iter().map(|event| event.name).collect();
        assert_eq!(names[..2], ["hello", "gap"], "{id}");
        // It goes on all the same, from how the room stands.
        let sold = |data: &Value| of_seat(data, "A1")["state"] == "sold";
        back.first("seats", sold).await;
    }
}
