//! What is told of seats, wallets, audit and switches.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::stream::{Stream, of_replica, of_seat, path, since};
use crate::support::{
    A, B, Database, PATIENCE, Process, Scratch, World, eventually, free_ports, promised,
};

on_both_databases!(
    a_booking_on_one_replica_is_seen_at_the_other,
    a_change_of_which_nothing_is_heard_is_seen_all_the_same,
    a_booking_that_is_committed_after_one_with_a_higher_number_is_told,
    only_what_changed_is_told,
    a_double_booking_and_a_lost_update_are_told_as_they_are,
    switches_and_resets_are_told,
    a_room_that_is_laid_out_anew_or_deleted_sends_its_readers_away,
    names_arrive_as_they_were_given,
);

/// From the answer to the event.
const SEEN: Duration = Duration::from_secs(1);

async fn a_booking_on_one_replica_is_seen_at_the_other(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("seen").await;
    let streams = [
        Stream::settled(&world, A, &room.name).await,
        Stream::settled(&world, B, &room.name).await,
    ];
    for seat in ["A1", "A2", "A3"] {
        room.books("Ana", seat).on(B).await.is("booked");
        let start = Instant::now();
        for stream in &streams {
            let sold = |data: &Value| of_seat(data, seat)["buyers"] == json!(["Ana"]);
            let event = stream.first("seats", sold).await;
            promised("a booking on B is seen", SEEN, since(start, &event));
        }
    }
    let start = Instant::now();
    room.transfers("alice", "bob", "80.00")
        .on(B)
        .await
        .is("transferred");
    for stream in &streams {
        let poor = json!({"wallet": "alice", "balance": "20.00", "expected": "20.00"});
        let moved = |data: &Value| {
            data["wallets"]
                .as_array()
                .is_some_and(|all| all.contains(&poor))
        };
        let event = stream.first("wallets", moved).await;
        promised("a transfer on B is seen", SEEN, since(start, &event));
        stream
            .first("audit", |audit| {
                audit["attempts"] == 4 && audit["leases_left"] == 0
            })
            .await;
    }
}

/// A third replica whose address leads nowhere: what it does can only be seen in the database.
async fn a_change_of_which_nothing_is_heard_is_seen_all_the_same(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("unheard").await;
    let folder = Scratch::new("unheard");
    let address = format!("127.0.0.1:{}", free_ports(1));
    let nowhere = format!("http://127.0.0.1:{}", free_ports(1));
    let arguments = [
        "serve",
        "--name",
        "C",
        "--listen",
        &address,
        "--advertise",
        &nowhere,
    ];
    let environment = [
        ("DATABASE_URL", world.database_url()),
        ("REDIS_URL", world.redis_url()),
    ];
    let third = Process::new(&arguments, &environment, &folder.join("C.log"));
    folder.ends(third.start());
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    eventually("a third replica", PATIENCE, async || {
        let ready = client.get(format!("http://{address}/readyz")).send().await;
        ready.map(drop).map_err(|error| error.to_string())
    })
    .await;

    let stream = Stream::of(&world, A, &room.name).await;
    let gone = |data: &Value| {
        of_replica(data, "C")
            == &json!({"name": "C", "url": nowhere, "alive": false, "silent": false})
    };
    stream.first("replicas", gone).await;
    for seat in ["A1", "A2", "A3"] {
        let booking = client.post(format!("http://{address}/api/rooms/{}/bookings", room.name));
        let booking = booking
            .json(&json!({"seat": seat, "buyer": "Ana"}))
            .send()
            .await;
        assert_eq!(booking.expect("an answer").status(), 201);
        let start = Instant::now();
        let event = stream
            .first("seats", |data| of_seat(data, seat)["state"] == "sold")
            .await;
        promised(
            "a booking of which nothing is heard is seen",
            SEEN,
            since(start, &event),
        );
    }
    assert!(stream.all("step").is_empty());
}

/// Numbers are drawn before the commit: whoever looks only for higher ones than it knows misses this one for ever.
async fn a_booking_that_is_committed_after_one_with_a_higher_number_is_told(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("late").await;
    room.books("Ana", "A1").on(A).await.is("booked");
    let records = room.asks(Method::GET, "/bookings", None).await.json();
    let lower = &records[0]["seq"];
    assert!(lower.is_i64(), "{records}");
    room.resets().await;
    let stream = Stream::settled(&world, A, &room.name).await;
    room.books("Ana", "A1").on(A).await.is("booked");
    let buyers = |data: &Value, seat| of_seat(data, seat)["buyers"].clone();
    let first = |data: &Value| buyers(data, "A1") == json!(["Ana"]);
    stream.first("seats", first).await;

    let anyway = match database {
        Database::Postgres => "OVERRIDING SYSTEM VALUE",
        Database::Sqlite => "",
    };
    let nil = "00000000-0000-0000-0000-000000000000";
    let name = &room.name;
    let drawn_earlier = format!(
        "INSERT INTO booking (seq, booking_id, room_id, attempt, replica, epoch, seat, buyer, version_read, version_written)
         {anyway}
         SELECT {lower}, '{nil}', room_id, '{nil}', 'B', epoch, 'A2', 'Ben', 0, 1
         FROM room
         WHERE name = '{name}'"
    );
    assert_eq!(world.changes(&drawn_earlier).await, 1);
    let written = format!(
        "UPDATE seat
         SET state = 'sold', buyer = 'Ben', version = version + 1
         WHERE name = 'A2'
           AND room_id = (SELECT room_id FROM room WHERE name = '{name}')"
    );
    assert_eq!(world.changes(&written).await, 1);
    let second = |data: &Value| buyers(data, "A2") == json!(["Ben"]);
    stream.first("seats", second).await;
    // And those after it, too.
    room.books("Cem", "A3").on(B).await.is("booked");
    let third = |data: &Value| buyers(data, "A3") == json!(["Cem"]);
    stream.first("seats", third).await;
}

async fn only_what_changed_is_told(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_of("large", json!({"rows": 100, "columns": 100}))
        .await;
    let stream = Stream::settled(&world, A, &room.name).await;
    let before = stream.events().len();
    let bytes = stream.bytes();
    let booked = ["A1", "Z50", "CV100"];
    for seat in booked {
        room.books("Ana", seat).on(B).await.is("booked");
        stream
            .first("seats", |data| of_seat(data, seat)["state"] == "sold")
            .await;
    }
    let events = stream.events().split_off(before);
    let seats = events.iter().filter(|event| event.name == "seats");
    let told: Vec<&str> = seats
        .flat_map(|event| event.data["seats"].as_array().expect("a list"))
        .map(|seat| seat["seat"].as_str().expect("a name"))
        .collect();
    assert_eq!(told, booked);
    assert!(
        !events
            .iter()
            .any(|event| event.name == "wallets" || event.name == "switches")
    );
    let bytes = stream.bytes() - bytes;
    println!("3 bookings among 10,000 seats are told in {bytes} bytes");
    assert!(bytes < 20_000);
}

async fn a_double_booking_and_a_lost_update_are_told_as_they_are(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "think_ms": 2000});
    let room = world.room_with("double", switches).await;
    let stream = Stream::settled(&world, A, &room.name).await;
    let both = |data: &Value| {
        let buyers = of_seat(data, "A1")["buyers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let buyers: BTreeSet<_> = buyers.iter().filter_map(Value::as_str).collect();
        buyers == BTreeSet::from(["Ana", "Ben"])
    };
    room.race("one-seat").await;
    stream.first("seats", both).await;
    let twice = |audit: &Value| audit["sentence"] == "1 seat sold twice";
    let audit = stream.first("audit", twice).await.data;
    assert_eq!(audit["seats_sold_twice"][0]["seat"], "A1");

    room.race("lost-update").await;
    let alice = json!({"wallet": "alice", "balance": "20.00", "expected": "-60.00"});
    let lost = |data: &Value| {
        data["wallets"]
            .as_array()
            .is_some_and(|all| all.contains(&alice))
    };
    stream.first("wallets", lost).await;
    // The reset of the second race freed what the first one sold.
    let free = json!({"seat": "A1", "state": "free", "buyers": []});
    stream
        .first("seats", |data| of_seat(data, "A1") == &free)
        .await;
}

async fn switches_and_resets_are_told(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("switches").await;
    let stream = Stream::settled(&world, A, &room.name).await;
    let start = Instant::now();
    let changed = room.seen_from(B).switches(json!({"locking": false})).await;
    let off = |data: &Value| data["switches"]["locking"] == false;
    let event = stream.first("switches", off).await;
    promised("a switch is seen", SEEN, since(start, &event));
    assert_eq!(event.data["epoch"], changed["epoch"]);

    room.books("Ana", "A1").await.is("booked");
    stream
        .first("seats", |data| of_seat(data, "A1")["state"] == "sold")
        .await;
    let start = Instant::now();
    room.seen_from(B).resets().await;
    let event = stream
        .first("seats", |data| of_seat(data, "A1")["state"] == "free")
        .await;
    promised("a reset is seen", SEEN, since(start, &event));
}

async fn a_room_that_is_laid_out_anew_or_deleted_sends_its_readers_away(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("anew").await;
    let stream = Stream::settled(&world, A, &room.name).await;
    // The same room once more is no reason to read the page anew.
    room.seen_from(B).is_made(json!({})).await;
    let epoch = room.epoch().await;
    stream
        .first("switches", |data| data["epoch"] == epoch)
        .await;
    assert!(stream.all("gap").is_empty());
    room.seen_from(B)
        .is_made(json!({"rows": 2, "columns": 2}))
        .await;
    stream.first("gap", |_| true).await;

    let other = Stream::settled(&world, A, &room.name).await;
    room.seen_from(B).asks(Method::DELETE, "", None).await;
    other.first("gap", |_| true).await;
    assert_eq!(world.get(A, &path(&room.name)).await.status, 404);
}

async fn names_arrive_as_they_were_given(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("names").await;
    let stream = Stream::settled(&world, A, &room.name).await;
    let names = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=1>",
        "\u{202e}nelreb\u{202c}",
        "e\u{301}\u{327} 👩‍👩‍👧‍👦 {{7*7}} data: x",
        "id: 7\\n\\nevent: gap",
    ];
    for (number, name) in (1..).zip(names) {
        let seat = format!("B{number}");
        room.books(name, &seat).on(B).await.is("booked");
        let sold = |data: &Value| of_seat(data, &seat)["state"] == "sold";
        let event = stream.first("seats", sold).await;
        assert_eq!(of_seat(&event.data, &seat)["buyers"], json!([name]));
        let step = stream.first("step", |step| step["who"] == name).await;
        assert_eq!(step.data["what"], format!("{name} books {seat}"));
    }
    assert!(stream.all("gap").is_empty());
}
