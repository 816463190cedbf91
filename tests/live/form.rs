//! What a stream looks like, what it begins with, and what is not one.

use reqwest::Method;
use serde_json::{Value, json};

use crate::stream::{Stream, path};
use crate::support::{A, B, Database, PATIENCE, World, eventually};

on_both_databases!(
    a_stream_begins_with_hello_and_how_the_room_stands,
    the_last_race_can_be_read_again,
);

async fn a_stream_begins_with_hello_and_how_the_room_stands(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("form").await;
    room.books("Ana", "A1").on(A).await.is("booked");
    let stream = Stream::settled(&world, A, &room.name).await;

    let header = |name: &str| stream.headers[name].to_str().expect("a text");
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store, no-transform");
    assert_eq!(header("x-accel-buffering"), "no");
    let retry = stream.other().into_iter().next().expect("a first line");
    let retry: u32 = retry
        .strip_prefix("retry: ")
        .unwrap_or(&retry)
        .parse()
        .expect("a time");
    assert!((500..=2000).contains(&retry), "{retry}");

    let hello = &stream.events()[0];
    assert_eq!(
        (hello.name.as_str(), &hello.data["replica"]),
        ("hello", &json!("A"))
    );
    assert_eq!(hello.data["room"], json!(room.name));
    assert_eq!(hello.data["epoch"], json!(room.epoch().await));
    assert!(hello.data["now_ms"].is_f64());

    let shown = room.looks().await;
    tells_how_it_stands(&stream, &shown);
    // The second reader begins where the first is, and hears the same.
    let second = Stream::settled(&world, A, &room.name).await;
    tells_how_it_stands(&second, &shown);
    assert_eq!(second.last_id(), stream.last_id());
}

fn tells_how_it_stands(stream: &Stream, room: &Value) {
    let first = |name: &str| stream.all(name).into_iter().next().expect("it is told");
    let seats = json!([{"seat": "A1", "state": "sold", "buyers": ["Ana"]}]);
    assert_eq!(first("seats")["seats"], seats);
    let wallets = first("wallets")["wallets"]
        .as_array()
        .expect("a list")
        .len();
    assert_eq!(wallets, 4);
    assert_eq!(
        first("wallets")["wallets"][0],
        json!({"wallet": "alice", "balance": "100.00", "expected": "100.00"})
    );
    assert_eq!(
        first("switches"),
        json!({"epoch": room["epoch"], "switches": room["switches"]})
    );
    assert_eq!(first("audit")["sentence"], room["audit"]["sentence"]);
}

#[tokio::test]
async fn a_room_that_is_not_there_has_no_stream() {
    let world = World::shared(Database::Sqlite).await;
    for name in ["no-such-room", "No Room"] {
        let answer = world.get(A, &path(name)).await;
        assert_eq!(answer.status, 404);
        answer.is("not-found");
    }
}

/// Whoever only asks for the headers, or hangs up, leaves nothing behind on either replica.
#[tokio::test]
async fn nobody_is_left_behind_when_readers_hang_up() {
    let world = World::own(Database::Sqlite).start().await;
    let room = world.room("hang-up").await;
    let head = world
        .request(A, Method::HEAD, &path(&room.name))
        .send()
        .await;
    let head = head.expect("an answer");
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()["content-type"], "text/event-stream");
    let nobody = json!({"readers": 0, "rooms": 0, "feeds": 0});
    assert_eq!(world.get(A, "/peer/readers").await.json(), nobody);

    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(Stream::settled(&world, A, &room.name).await);
    }
    let watched = json!({"readers": 20, "rooms": 1, "feeds": 0});
    assert_eq!(world.get(A, "/peer/readers").await.json(), watched);
    let followed = json!({"readers": 0, "rooms": 0, "feeds": 1});
    assert_eq!(world.get(B, "/peer/readers").await.json(), followed);

    drop(streams);
    for replica in [A, B] {
        let (_, took) = eventually("nobody is left", PATIENCE, async || {
            let readers = world.get(replica, "/peer/readers").await.json();
            if readers == nobody {
                Ok(())
            } else {
                Err(readers.to_string())
            }
        })
        .await;
        println!("nobody is left on {} after {took:.1?}", replica.name());
    }
}

async fn the_last_race_can_be_read_again(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("last-race").await;
    let last = async || room.asks(Method::GET, "/races/last", None).await;
    last().await.is("not-found");
    let answer = room.race("one-seat").await;
    let kept = last().await;
    assert_eq!(kept.status, 200);
    let kept = kept.json();
    assert_eq!(kept["race"], "one-seat");
    assert_eq!(kept["attempts"], answer["attempts"]);
    assert_eq!(kept["sentence"], answer["audit"]["sentence"]);
    let records = kept["records"].as_array().expect("a list");
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record["steps"][0]["kind"], "began");
    }
    room.resets().await;
    last().await.is("not-found");
}
