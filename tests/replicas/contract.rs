//! What every answer looks like.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{A, Answer, B, Database, PATIENCE, World, eventually};

on_both_databases!(
    a_room_is_described_as_documented,
    a_new_room_has_the_default_switches_seats_and_wallets,
    a_room_has_the_shape_that_was_asked_for,
    switches_are_obeyed_by_all_replicas,
    a_booking_is_answered_as_documented,
    a_transfer_is_answered_as_documented,
    every_answer_to_an_attempt_carries_its_label_and_its_times,
    an_attempt_keeps_the_label_that_it_was_given,
    tokens_grow_with_each_grant,
    an_audit_is_answered_as_documented,
    a_silent_replica_leaves_open_how_many_leases_are_left,
    gates_tell_who_waits_on_all_replicas,
    replicas_know_each_other,
    locks_say_what_they_guarantee,
    health_is_told,
    unknown_paths_are_problems_too,
    wrong_methods_are_problems_too,
    head_is_get_without_a_body,
    main_is_there_and_stays,
    a_deleted_room_is_gone,
);

async fn a_room_is_described_as_documented(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_of("shape", json!({"rows": 1, "columns": 2}))
        .await;
    room.books("Ana", "A2").await.is("booked");
    let looks = room.looks().await;
    assert_eq!(
        keys(&looks),
        ["audit", "epoch", "room", "seats", "switches", "wallets"]
    );
    assert_eq!(looks["room"], room.name);
    assert!(looks["epoch"].as_i64() > Some(0), "{looks}");
    assert_eq!(
        looks["seats"],
        json!([
            {"seat": "A1", "state": "free", "buyer": null},
            {"seat": "A2", "state": "sold", "buyer": "Ana"},
        ])
    );
    assert_eq!(
        looks["wallets"][0],
        json!({"wallet": "alice", "balance": "100.00"})
    );
    assert_eq!(looks["audit"]["attempts"], 1, "{looks}");
}

async fn a_new_room_has_the_default_switches_seats_and_wallets(database: Database) {
    let world = World::shared(database).await;
    let looks = world.room("defaults").await.looks().await;
    assert_eq!(
        looks["switches"],
        json!({
            "locking": true, "lock": "redis", "fencing": "from_first_read", "compare": false,
            "order": "sorted", "release": "owner_checked", "waiting": "notify",
            "ttl_ms": 2000, "renew": true, "wait_ms": 5000, "think_ms": 0,
        })
    );
    let seats = looks["seats"].as_array().expect("a list");
    assert_eq!(seats.len(), 5 * 8);
    assert_eq!(seats[0]["seat"], "A1");
    assert_eq!(seats[39]["seat"], "E8");
    let wallet = |name| json!({"wallet": name, "balance": "100.00"});
    assert_eq!(
        looks["wallets"],
        json!([
            wallet("alice"),
            wallet("bob"),
            wallet("carol"),
            wallet("dave")
        ])
    );
}

async fn a_room_has_the_shape_that_was_asked_for(database: Database) {
    let world = World::shared(database).await;
    let shape = json!({"rows": 28, "columns": 3, "wallets": [
        {"name": "Zoé 张", "balance": "0.00"},
        {"name": "rich", "balance": "999999999.99"},
    ]});
    let room = world.room_of("shape", shape).await;
    let looks = room.looks().await;
    let seats = looks["seats"].as_array().expect("a list");
    assert_eq!(seats.len(), 28 * 3);
    assert_eq!(seats[3 * 25]["seat"], "Z1");
    assert_eq!(seats[3 * 26]["seat"], "AA1");
    assert_eq!(seats[3 * 27 + 2]["seat"], "AB3");
    assert_eq!(
        looks["wallets"],
        json!([
            {"wallet": "Zoé 张", "balance": "0.00"},
            {"wallet": "rich", "balance": "999999999.99"},
        ])
    );
    room.books("Ana", "AB3").await.is("booked");
    room.transfers("rich", "Zoé 张", "999999999.99")
        .await
        .is("transferred");
    assert_eq!(room.balance("Zoé 张").await, "999999999.99");
    assert_eq!(room.balance("rich").await, "0.00");
    room.audit().await.is_clean_after(2);
}

async fn switches_are_obeyed_by_all_replicas(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("switches").await;
    let all = json!({
        "locking": false, "lock": "table", "fencing": "on_write", "compare": true,
        "order": "as_given", "release": "blind", "waiting": "backoff",
        "ttl_ms": 600_000, "renew": false, "wait_ms": 0, "think_ms": 10_000,
    });
    let changed = room.switches(all.clone()).await;
    assert_eq!(changed["switches"], all);
    for replica in [A, B] {
        let seen = room.seen_from(replica).looks().await;
        assert_eq!(seen["switches"], all);
        assert_eq!(seen["epoch"], changed["epoch"]);
    }
    // One by one, too, and each leaves the others as they are.
    for (name, value) in all.as_object().expect("an object") {
        let defaults = room.switches(json!({"think_ms": 0})).await["switches"].clone();
        let changed = room.switches(json!({name: value})).await;
        let mut expected = defaults;
        expected[name] = value.clone();
        assert_eq!(changed["switches"], expected);
    }
}

async fn a_booking_is_answered_as_documented(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("booking").await;
    for (lock, has_token) in [
        ("redis", true),
        ("table", true),
        ("row", false),
        ("mutex", false),
    ] {
        let looks = room.switches(json!({"lock": lock})).await;
        room.resets().await;
        let answer = room.books("Ana", "A1").on(B).await;
        answer.is("booked");
        assert_eq!(answer.header("content-type"), "application/json");
        let body = answer.json();
        let fields = [
            "attempt", "buyer", "epoch", "id", "lock", "replica", "seat", "token",
        ];
        assert_eq!(keys(&body), fields);
        for label in ["attempt", "id"] {
            Uuid::parse_str(body[label].as_str().expect("a text")).expect("a UUID");
        }
        assert_eq!(
            (&body["seat"], &body["buyer"]),
            (&json!("A1"), &json!("Ana"))
        );
        assert_eq!(
            (&body["replica"], &body["lock"]),
            (&json!("B"), &json!(lock))
        );
        assert!(body["epoch"].as_i64() > looks["epoch"].as_i64(), "{body}");
        assert_eq!(body["token"].is_i64(), has_token, "{body}");
        assert_eq!(body["token"].is_null(), !has_token, "{body}");
    }
}

async fn a_transfer_is_answered_as_documented(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("transfer").await;
    let answer = room.transfers("bob", "alice", "0.01").on(B).await;
    answer.is("transferred");
    let body = answer.json();
    for label in ["attempt", "id"] {
        Uuid::parse_str(body[label].as_str().expect("a text")).expect("a UUID");
    }
    assert_eq!(
        (&body["from"], &body["to"]),
        (&json!("bob"), &json!("alice"))
    );
    assert_eq!(body["amount"], "0.01");
    assert_eq!(
        (&body["replica"], &body["lock"]),
        (&json!("B"), &json!("redis"))
    );
    assert_eq!(keys(&body["tokens"]), ["alice", "bob"]);
    assert!(
        body["tokens"]["alice"].is_i64() && body["tokens"]["bob"].is_i64(),
        "{body}"
    );
    assert_eq!(room.balance("alice").await, "100.01");
    assert_eq!(room.balance("bob").await, "99.99");
}

async fn every_answer_to_an_attempt_carries_its_label_and_its_times(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("labelled", json!({"wait_ms": 0})).await;
    let holder = room.books("Ana", "B1").on(A);
    let holder = holder.pausing_at("after_read").at_gate("holder").starts();
    room.one_waits_at_gate("holder", A, "after_read").await;

    // An attempt is answered before its lock is free again, and nobody waits here.
    let rests = async || room.has_no_lease_left(PATIENCE).await;
    let booked = room.books("Ana", "A1").await;
    rests().await;
    let transferred = room.transfers("alice", "bob", "1.00").await;
    rests().await;
    let answers = [
        ("booked", booked),
        ("transferred", transferred),
        ("seat-taken", room.books("Ben", "A1").await),
        ("lock-timeout", room.books("Ben", "B1").on(B).await),
        ("not-found", room.books("Ben", "Z99").await),
        ("invalid-field", room.books("", "A1").await),
        (
            "insufficient-funds",
            room.transfers("alice", "bob", "1000.00").await,
        ),
        ("invalid-field", room.transfers("alice", "bob", "-1").await),
        ("not-found", room.transfers("alice", "nobody", "1.00").await),
        (
            "not-found",
            world.no_room("no-such-room").books("Ana", "A1").await,
        ),
    ];
    for (outcome, answer) in &answers {
        answer.is(outcome);
        is_labelled(answer);
        has_times(answer);
    }
    let [booked, _, taken, late, unknown, ..] = &answers;
    assert!(booked.1.trips() >= 1, "{booked:?}");
    assert!(taken.1.trips() >= 1, "{taken:?}");
    assert!(late.1.trips() >= 1, "{late:?}");
    assert_eq!(unknown.1.trips(), 0, "{unknown:?}");

    let labels: std::collections::HashSet<String> = answers
        .iter()
        .map(|(_, answer)| is_labelled(answer))
        .collect();
    assert_eq!(
        labels.len(),
        answers.len(),
        "each attempt has a label of its own"
    );
    room.opens("holder").await;
    has_times(&holder.answer().await);
}

async fn an_attempt_keeps_the_label_that_it_was_given(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("own-label").await;
    let label = Uuid::new_v4().to_string();
    let booked = room.books("Ana", "A1").labelled(&label).await;
    booked.is("booked");
    assert_eq!(is_labelled(&booked), label);
    // A label is no idempotency key: the same one again is another attempt.
    let taken = room.books("Ana", "A1").labelled(&label).on(B).await;
    taken.is("seat-taken");
    assert_eq!(is_labelled(&taken), label);
    let refused = room.books("", "A1").labelled(&label).await;
    refused.is("invalid-field");
    assert_eq!(is_labelled(&refused), label);
    let no_label = room.books("Ana", "A2").labelled("Ana's second").await;
    no_label.refuses(&["invalid-field"], "attempt");

    let waiting = room.books("Ben", "A3").labelled(&label);
    let waiting = waiting.pausing_at("after_read").at_gate("here").starts();
    assert_eq!(room.waits_at_gate("here", 1).await[0].attempt, label);
    room.opens("here").await;
    waiting.answer().await.is("booked");
}

async fn tokens_grow_with_each_grant(database: Database) {
    let world = World::shared(database).await;
    for lock in ["redis", "table"] {
        let room = world.room_with("tokens", json!({"lock": lock})).await;
        let mut last = 0;
        for run in 0..10 {
            let replica = [A, B][run % 2];
            let (from, to) = [("alice", "bob"), ("bob", "alice")][run % 2];
            let body = room.transfers(from, to, "1.00").on(replica).await.json();
            let token = body["tokens"]["alice"].as_i64().expect("a number");
            assert!(token > last, "{token} after {last} under {lock}");
            last = token;
        }
    }
}

async fn an_audit_is_answered_as_documented(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("audit", json!({"locking": false, "fencing": "off"}))
        .await;
    let untouched = room.audit_at_rest().await;
    let sentence = untouched["sentence"].as_str().expect("a text").to_owned();
    assert!(!sentence.to_lowercase().contains("safe"), "{sentence}");
    assert_eq!(
        untouched,
        json!({
            "clean": true, "sentence": sentence, "attempts": 0, "seats_sold_twice": [],
            "money": {"opened": "400.00", "now": "400.00", "difference": "0.00"},
            "wallets": [], "negative_wallets": [], "token_disorder": [], "leases_left": 0,
        })
    );

    let gated =
        |attempt: crate::support::Attempt| attempt.pausing_at("after_read").at_gate("g").starts();
    let ana = gated(room.books("Ana", "A1").on(A));
    let ben = gated(room.books("Ben", "A1").on(B));
    let to_bob = gated(room.transfers("alice", "bob", "80.00").on(A));
    let to_carol = gated(room.transfers("alice", "carol", "80.00").on(B));
    room.waits_at_gate("g", 4).await;
    room.opens("g").await;
    for attempt in [ana, ben, to_bob, to_carol] {
        assert_eq!(attempt.answer().await.status, 201);
    }
    let mut audit = room.audit_at_rest().await;
    // Which of the two came first is not told by the gate.
    let bookings = audit["seats_sold_twice"][0]["bookings"]
        .as_array_mut()
        .expect("a list");
    bookings.sort_by_key(|booking| booking["buyer"].to_string());
    assert_eq!(
        audit,
        json!({
            "clean": false,
            "sentence": "1 seat sold twice, 80.00 appeared from nowhere",
            "attempts": 4,
            "seats_sold_twice": [{"seat": "A1", "bookings": [
                {"buyer": "Ana", "replica": "A", "token": null},
                {"buyer": "Ben", "replica": "B", "token": null},
            ]}],
            "money": {"opened": "400.00", "now": "480.00", "difference": "80.00"},
            "wallets": [{"wallet": "alice", "balance": "20.00", "expected": "-60.00"}],
            "negative_wallets": [], "token_disorder": [], "leases_left": 0,
        })
    );
    assert_eq!(room.looks().await["audit"]["sentence"], audit["sentence"]);
}

/// Frozen, it may hold some; dead, it holds none.
async fn a_silent_replica_leaves_open_how_many_leases_are_left(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("silent").await;
    room.has_no_lease_left(PATIENCE).await;
    world.process(B).freezes().await;
    assert_eq!(room.audit().await.leases_left, None);
    assert!(room.audit().await.clean, "it is no part of it");
    world.process(B).signal(Signal::SIGCONT);
    room.has_no_lease_left(PATIENCE).await;
    world.kills(B);
    room.has_no_lease_left(PATIENCE).await;
}

async fn gates_tell_who_waits_on_all_replicas(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("gates", json!({"locking": false})).await;
    let ana = room
        .books("Ana", "A1")
        .on(A)
        .pausing_at("after_read")
        .at_gate("g")
        .starts();
    let ben = room
        .books("Ben", "A2")
        .on(B)
        .pausing_at("before_write")
        .at_gate("g")
        .starts();
    let waiting = room.waits_at_gate("g", 2).await;
    for replica in [A, B] {
        // A replica that is slow for a moment is not seen by the other one.
        eventually("all waiters are seen", PATIENCE, async || {
            let mut seen = room.seen_from(replica).gate("g").await;
            seen.sort_by(|one, other| one.replica.cmp(&other.replica));
            match seen == waiting {
                true => Ok(()),
                false => Err(format!("{seen:?}, seen from {}", replica.name())),
            }
        })
        .await;
    }
    assert!(room.gate("another").await.is_empty());
    let elsewhere = world.room("elsewhere").await;
    assert!(
        elsewhere.gate("g").await.is_empty(),
        "a gate belongs to its room"
    );

    // Opened at B, it lets go on A, too, and answers who went.
    let mut let_go = room.seen_from(B).opens("g").await;
    let_go.sort_by(|one, other| one.replica.cmp(&other.replica));
    assert_eq!(let_go, waiting);
    ana.answer().await.is("booked");
    ben.answer().await.is("booked");
    assert!(room.gate("g").await.is_empty());

    // An opening is not remembered.
    let nobody = room.asks(Method::POST, "/gates/g", None).await;
    assert_eq!(
        (nobody.status, nobody.json()),
        (200, json!({"waiting": []}))
    );
    let cem = room
        .books("Cem", "A3")
        .on(B)
        .pausing_at("after_read")
        .at_gate("g")
        .starts();
    room.one_waits_at_gate("g", B, "after_read").await;
    room.opens("g").await;
    cem.answer().await.is("booked");
}

async fn replicas_know_each_other(database: Database) {
    let world = World::shared(database).await;
    for asked in [A, B] {
        let answer = world.get(asked, "/api/replicas").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let list = answer.json();
        let replicas = list.as_array().expect("a list");
        assert_eq!(replicas.len(), 2, "{list}");
        for replica in [A, B] {
            let told = replicas.iter().find(|one| one["name"] == replica.name());
            let told = told.unwrap_or_else(|| panic!("{} in {list}", replica.name()));
            assert_eq!(keys(told), ["alive", "last_seen", "name", "pid", "url"]);
            assert_eq!(told["alive"], true, "{told}");
            assert_eq!(told["pid"], world.process(replica).pid(), "{told}");
            assert_eq!(
                told["url"].as_str().map(|url| url.trim_end_matches('/')),
                Some(&*world.url(replica))
            );
        }
    }
}

async fn locks_say_what_they_guarantee(database: Database) {
    let world = World::shared(database).await;
    let answer = world.get(A, "/api/locks").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for lock in [
        "mutex",
        "redis",
        "redlock",
        "dynamodb",
        "table",
        "row",
        "zookeeper",
        "etcd",
    ] {
        assert!(
            answer.text.contains(&format!("\"{lock}\"")),
            "{lock}: {answer:?}"
        );
    }
}

async fn health_is_told(database: Database) {
    let world = World::shared(database).await;
    for replica in [A, B] {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(world.get(replica, path).await.status, 200, "{path}");
        }
    }
}

async fn unknown_paths_are_problems_too(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("paths").await;
    for path in [
        "/api/",
        "/api/nothing",
        "/api/rooms/no-such-room",
        "/api/rooms/no-such-room/audit",
    ] {
        world.get(A, path).await.is("not-found");
    }
    for path in ["/nothing", "/gates", "/bookings/1"] {
        room.asks(Method::GET, path, None).await.is("not-found");
    }
    let nowhere = world.no_room("no-such-room");
    let some = Some(json!({}));
    nowhere
        .asks(Method::GET, "/gates/g", None)
        .await
        .is("not-found");
    nowhere
        .asks(Method::POST, "/gates/g", None)
        .await
        .is("not-found");
    nowhere
        .asks(Method::POST, "/reset", None)
        .await
        .is("not-found");
    nowhere
        .asks(Method::PATCH, "/switches", some)
        .await
        .is("not-found");
    nowhere.asks(Method::DELETE, "", None).await.is("not-found");
    nowhere.asks_for_race("one-seat").await.is("not-found");
    nowhere.books("Ana", "A1").await.is("not-found");
    nowhere
        .transfers("alice", "bob", "1.00")
        .await
        .is("not-found");
}

async fn wrong_methods_are_problems_too(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("methods").await;
    let wrong = [
        (Method::POST, ""),
        (Method::DELETE, "/bookings"),
        (Method::PUT, "/transfers"),
        (Method::GET, "/switches"),
        (Method::POST, "/switches"),
        (Method::GET, "/reset"),
        (Method::PATCH, "/races"),
        (Method::POST, "/audit"),
        (Method::DELETE, "/gates/g"),
    ];
    for (method, path) in wrong {
        let answer = room.asks(method.clone(), path, None).await;
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        answer.problem();
        assert!(
            !answer.header("allow").is_empty(),
            "{method} {path}: {answer:?}"
        );
    }
}

async fn head_is_get_without_a_body(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("head").await;
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/api/replicas",
        "/api/locks",
        &format!("/api/rooms/{}", room.name),
    ] {
        let answer = Answer::to(world.request(A, Method::HEAD, path))
            .await
            .expect("an answer");
        assert_eq!((answer.status, answer.text.as_str()), (200, ""), "{path}");
    }
}

async fn main_is_there_and_stays(database: Database) {
    let world = World::shared(database).await;
    let main = world.no_room("main");
    let looks = main.looks_at_rest().await;
    assert_eq!(looks["switches"]["think_ms"], 100, "{looks}");
    let answer = main.asks(Method::DELETE, "", None).await;
    assert!((400..500).contains(&answer.status), "{answer:?}");
    answer.problem();
    assert_eq!(main.looks_at_rest().await, looks);
}

async fn a_deleted_room_is_gone(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("deleted").await;
    room.books("Ana", "A1").await.is("booked");
    let gone = room.asks(Method::DELETE, "", None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    for replica in [A, B] {
        let room = room.seen_from(replica);
        room.asks(Method::GET, "", None).await.is("not-found");
        room.books("Ben", "A2").on(replica).await.is("not-found");
        room.asks(Method::DELETE, "", None).await.is("not-found");
    }
    assert_eq!(room.is_made(json!({})).await.status, 201);
    room.audit().await.is_clean_after(0);
    room.books("Ben", "A1").await.is("booked");
}

/// The label of the attempt, a UUID in the body of whatever answer.
#[track_caller]
fn is_labelled(answer: &Answer) -> String {
    let body = answer.json();
    let label = body["attempt"].as_str();
    let label = label.unwrap_or_else(|| panic!("an attempt: {answer:?}"));
    Uuid::parse_str(label).unwrap_or_else(|_| panic!("a UUID: {answer:?}"));
    label.to_owned()
}

#[track_caller]
fn has_times(answer: &Answer) {
    let [wait, hold, work] = ["wait", "hold", "work"].map(|name| answer.timing(name));
    assert!(wait >= 0.0 && hold >= 0.0 && work >= 0.0, "{answer:?}");
    let whole = answer.took.as_secs_f64() * 1000.0;
    assert!(
        wait + hold <= whole + 1.0,
        "no longer than the whole: {answer:?}"
    );
    answer.trips();
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("an object: {value}"));
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
