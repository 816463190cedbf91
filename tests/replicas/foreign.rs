//! A page of another site, or a name that was pointed here, can change nothing. Reading is open.

use reqwest::Method;
use serde_json::json;

use crate::support::{A, Answer, Database, Room, World};

on_both_databases!(
    an_origin_of_another_site_changes_nothing,
    a_host_of_another_name_changes_nothing,
    own_origins_and_hosts_are_served,
    every_kind_of_change_is_covered,
);

async fn an_origin_of_another_site_changes_nothing(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("foreign").await;
    let port = world.port(A);
    let own = format!("127.0.0.1:{port}");
    let before = room.looks_at_rest().await;
    let foreign = [
        "http://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        format!("http://127.0.0.1:{}", port ^ 1),
        "http://127.0.0.1".to_owned(),
        format!("http://localhost:{port}"),
        format!("http://{own}.evil.example"),
        "null".to_owned(),
    ];
    for origin in &foreign {
        let answer = booking(&world, &room, &own, Some(origin)).await;
        is_refused(&answer, origin);
    }
    assert_eq!(room.looks_at_rest().await, before);
}

async fn a_host_of_another_name_changes_nothing(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("foreign").await;
    let port = world.port(A);
    let before = room.looks_at_rest().await;
    let foreign = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
    ];
    for host in &foreign {
        // As a browser would after the name was pointed here: origin and host agree.
        let origin = format!("http://{host}");
        is_refused(&booking(&world, &room, host, Some(&origin)).await, host);
        is_refused(&booking(&world, &room, host, None).await, host);
    }
    assert_eq!(room.looks_at_rest().await, before);

    let read = world.request(A, Method::GET, &format!("/api/rooms/{}", room.name));
    let read = Answer::to(read.header("host", "evil.example"))
        .await
        .expect("an answer");
    assert_eq!(read.status, 200, "{read:?}");
}

/// The negative control: the same requests from here.
async fn own_origins_and_hosts_are_served(database: Database) {
    let world = World::own(database)
        .serving(&["--allow-host", "tickets.example"])
        .start()
        .await;
    let room = world.room("own").await;
    let port = world.port(A);
    let hosts = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
        format!("10.1.2.3:{port}"),
        format!("tickets.example:{port}"),
        "tickets.example".to_owned(),
    ];
    for host in &hosts {
        room.resets().await;
        booking(&world, &room, host, None).await.is("booked");
        room.resets().await;
        let origin = format!("http://{}", host.to_lowercase());
        booking(&world, &room, host, Some(&origin))
            .await
            .is("booked");
    }
    is_refused(
        &booking(&world, &room, "evil.example", None).await,
        "evil.example",
    );
}

async fn every_kind_of_change_is_covered(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("foreign").await;
    let before = room.looks_at_rest().await;
    let new = format!("/api/rooms/{}-new", room.name);
    let path = |below: &str| format!("/api/rooms/{}{below}", room.name);
    let changes = [
        (Method::PUT, new.clone(), json!({})),
        (Method::PUT, path(""), json!({})),
        (Method::PATCH, path("/switches"), json!({"locking": false})),
        (Method::POST, path("/reset"), json!({})),
        (Method::DELETE, path(""), json!({})),
        (
            Method::POST,
            path("/bookings"),
            json!({"seat": "A1", "buyer": "Eve"}),
        ),
        (
            Method::POST,
            path("/transfers"),
            json!({"from": "alice", "to": "bob", "amount": "1.00"}),
        ),
        (Method::POST, path("/races"), json!({"race": "one-seat"})),
        (Method::POST, path("/gates/g"), json!({})),
    ];
    for (method, path, body) in changes {
        let request = world.request(A, method.clone(), &path).json(&body);
        let answer = Answer::to(request.header("origin", "http://evil.example")).await;
        is_refused(&answer.expect("an answer"), &format!("{method} {path}"));
    }
    assert_eq!(room.looks_at_rest().await, before);
    world.get(A, &new).await.is("not-found");
}

async fn booking(world: &World, room: &Room, host: &str, origin: Option<&str>) -> Answer {
    let path = format!("/api/rooms/{}/bookings", room.name);
    let mut request = world.request(A, Method::POST, &path).header("host", host);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let body = json!({"seat": "A1", "buyer": "Ana"});
    Answer::to(request.json(&body)).await.expect("an answer")
}

#[track_caller]
fn is_refused(answer: &Answer, what: &str) {
    assert!((400..500).contains(&answer.status), "{what}: {answer:?}");
    answer.problem();
}
