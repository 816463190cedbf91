//! The database or Redis goes away and comes back. Replicas say so meanwhile and need no restart after.

use std::time::Duration;

use serde_json::json;

use crate::support::{A, B, Database, PATIENCE, Replica, Room, World, eventually, promised};

on_both_databases!(
    without_redis_its_rooms_say_so_and_others_go_on,
    a_frozen_redis_is_unavailable_and_never_taken,
    two_redis_servers_do_not_pass_for_one,
);

const BACK_TO_NORMAL: Duration = Duration::from_secs(2);

#[tokio::test]
async fn without_postgres_every_attempt_says_so() {
    let world = World::own(Database::Postgres)
        .with_its_own_postgres()
        .start()
        .await;
    let rooms = [
        world.room_with("outage", json!({"lock": "redis"})).await,
        world.room_with("outage", json!({"lock": "table"})).await,
        world.room_with("outage", json!({"lock": "row"})).await,
        world.room_with("outage", json!({"locking": false})).await,
    ];

    for outage in 1..=2 {
        world.postgres().lock().await.kill().await.expect("it ends");
        let mut underway = Vec::new();
        for room in &rooms {
            for replica in [A, B] {
                let seat = format!("A{outage}");
                underway.push(room.books("Ana", &seat).on(replica).starts());
                let transfer = room.transfers("alice", "bob", "1.00");
                underway.push(transfer.on(replica).starts());
            }
        }
        for attempt in underway {
            let answer = attempt.answer().await;
            println!("without PostgreSQL: answered after {:.1?}", answer.took);
            answer.is("database-unavailable");
        }
        let looks = rooms[0].asks(reqwest::Method::GET, "", None).await;
        looks.is("database-unavailable");
        for replica in [A, B] {
            assert_eq!(world.get(replica, "/healthz").await.status, 200);
            assert_eq!(world.get(replica, "/readyz").await.status, 503);
        }

        let mut postgres = world.postgres().lock().await;
        postgres.start_again().await.expect("it starts");
        drop(postgres);
        for (number, room) in rooms.iter().enumerate() {
            for replica in [A, B] {
                let seat = format!("{}{outage}", ["B", "C"][replica as usize]);
                let took = books_again(room, replica, &seat).await;
                let what = format!("a booking after PostgreSQL is back, room {number}");
                promised(&what, BACK_TO_NORMAL, took);
            }
            room.audit().await.is_clean_after(2 * outage);
        }
    }
}

async fn without_redis_its_rooms_say_so_and_others_go_on(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room_with("outage", json!({"lock": "redis"})).await;
    let other = world.room_with("outage", json!({"lock": "table"})).await;
    // Both replicas have used it before.
    room.books("Zoe", "E1").on(A).await.is("booked");
    room.books("Zoe", "E2").on(B).await.is("booked");

    for outage in 1..=2 {
        world.redis().lock().await.kill().await.expect("it ends");
        for replica in [A, B] {
            for attempt in 1..=3 {
                let answer = room.books("Ana", "A1").on(replica).await;
                println!("attempt {attempt} without Redis: {:.1?}", answer.took);
                answer.is("lock-unavailable");
            }
            let seat = format!("{}{outage}", ["A", "B"][replica as usize]);
            other.books("Ana", &seat).on(replica).await.is("booked");
        }

        let mut redis = world.redis().lock().await;
        redis.start_again().await.expect("it starts");
        drop(redis);
        for replica in [A, B] {
            let seat = format!("{}{outage}", ["B", "C"][replica as usize]);
            let took = books_again(&room, replica, &seat).await;
            promised("a booking after Redis is back", BACK_TO_NORMAL, took);
        }
    }
    room.audit().await.is_clean_after(2 + 4);
    other.audit().await.is_clean_after(4);
}

/// Nothing answers, and connections stay open: neither "acquired" nor "taken by somebody".
async fn a_frozen_redis_is_unavailable_and_never_taken(database: Database) {
    let world = World::own(database).start().await;
    let switches = json!({"lock": "redis", "wait_ms": 2000});
    let room = world.room_with("frozen", switches).await;
    room.books("Zoe", "E1").on(A).await.is("booked");

    world.redis().lock().await.pause().expect("it freezes");
    let answer = room.books("Ana", "A1").on(A).await;
    world.redis().lock().await.resume().expect("it goes on");
    println!("a frozen Redis was noticed after {:.1?}", answer.took);
    answer.is("lock-unavailable");

    let took = books_again(&room, A, "A1").await;
    promised("a booking after Redis goes on", BACK_TO_NORMAL, took);
    room.audit().await.is_clean_after(2);
}

/// Two hosts, each with a Redis of its own: the second one's locks would protect from nobody.
async fn two_redis_servers_do_not_pass_for_one(database: Database) {
    let world = World::own(database).with_a_redis_each().start().await;
    let room = world
        .room_with("two-servers", json!({"lock": "redis"}))
        .await;
    let outcomes = [
        room.books("Ana", "A1").on(A).await.outcome(),
        room.books("Ben", "A2").on(B).await.outcome(),
    ];
    let refused = outcomes
        .iter()
        .filter(|one| *one == "lock-unavailable")
        .count();
    assert_eq!(refused, 1, "{outcomes:?}");
    assert!(outcomes.contains(&"booked".to_owned()), "{outcomes:?}");

    for (replica, outcome) in [A, B].into_iter().zip(&outcomes) {
        if outcome == "lock-unavailable" {
            let answer = room.books("Cem", "A3").on(replica).await;
            answer.is("lock-unavailable");
            for port in world.redis_ports() {
                assert!(
                    answer.text.contains(&port),
                    "names both servers: {answer:?}"
                );
            }
            assert!(
                answer
                    .text
                    .contains("delete the key {doublebook}:server there"),
                "says what to do: {answer:?}"
            );
        }
    }
}

/// Asks until it is booked; only what is unavailable may come before that.
async fn books_again(room: &Room, replica: Replica, seat: &str) -> Duration {
    let (_, took) = eventually("a booking after the outage", PATIENCE, async || {
        let answer = room.books("Ben", seat).on(replica).await;
        match answer.outcome().as_str() {
            "booked" => Ok(()),
            "lock-unavailable" | "database-unavailable" => Err(format!("{answer:?}")),
            other => panic!("{other} after an outage: {answer:?}"),
        }
    })
    .await;
    took
}
