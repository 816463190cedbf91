//! Nothing that is badly asked gives a 5xx, takes a lock or changes a room; what is wrong is named.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{A, Answer, B, Database, Room, World};

on_both_databases!(
    a_seat_that_does_not_exist_is_not_found,
    a_buyer_who_has_no_proper_name_is_refused,
    fields_of_a_wrong_type_are_named,
    bodies_that_are_no_json_are_refused,
    bodies_of_another_kind_are_refused,
    lists_are_no_objects,
    json_of_any_spelling_of_its_type_is_taken,
    bodies_that_are_too_large_are_refused,
    amounts_that_are_no_amounts_are_refused,
    amounts_are_never_rounded,
    wallets_that_do_not_exist_are_named,
    nobody_transfers_to_himself,
    a_wallet_that_would_overflow_breaks_nothing,
    pauses_out_of_range_are_named,
    switches_out_of_range_are_named,
    switches_that_nobody_knows_are_named,
    locks_that_are_not_there_are_refused,
    a_wrong_switch_leaves_the_right_ones_unchanged,
    rooms_of_an_impossible_shape_are_refused,
    rooms_of_an_impossible_name_are_refused,
    names_of_any_script_are_taken,
);

const INVALID: &[&str] = &["invalid-field"];
/// What cannot be the name of a seat or wallet may be called invalid or just unknown.
const NO_SUCH: &[&str] = &["invalid-field", "not-found"];

/// A room as it was before the bad input: its lock is the table on SQLite, and Redis on PostgreSQL.
struct Untouched {
    world: World,
    room: Room,
    before: Value,
}

impl Untouched {
    async fn on(database: Database) -> Self {
        let world = World::shared(database).await;
        let lock = match database {
            Database::Sqlite => "table",
            Database::Postgres => "redis",
        };
        let room = world.room_with("bad-input", json!({"lock": lock})).await;
        room.books("Zoe", "E8").await.is("booked");
        let before = room.looks_at_rest().await;
        Self {
            world,
            room,
            before,
        }
    }

    /// An attempt was refused before it asked for a lock, and says which attempt it was.
    #[track_caller]
    fn took_no_lock(&self, answer: &Answer) {
        assert_eq!(answer.trips(), 0, "{answer:?}");
        assert!(answer.json()["attempt"].is_string(), "{answer:?}");
    }

    /// The room is as it was, nobody holds a lock of it, and the replicas work.
    async fn is_untouched(&self) {
        let replicas = [A, B].map(|replica| self.room.seen_from(replica));
        for room in &replicas {
            assert_eq!(room.looks_at_rest().await, self.before);
        }
        let locks = self.world.locks_held(&self.room.name).await;
        assert!(locks.is_empty(), "{locks:?}");
        for (replica, seat) in [(A, "A1"), (B, "A2")] {
            self.world.process(replica).assert_alive();
            self.room.books("Ana", seat).on(replica).await.is("booked");
        }
        self.room.audit().await.is_clean_after(3);
    }
}

async fn a_seat_that_does_not_exist_is_not_found(database: Database) {
    let untouched = Untouched::on(database).await;
    let room = &untouched.room;
    for seat in ["Z99", "A9", "F1", "A10"] {
        let answer = room.books("Ana", seat).await;
        answer.is("not-found").refuses(&["not-found"], seat);
        untouched.took_no_lock(&answer);
    }
    let odd = [
        "".to_owned(),
        " ".to_owned(),
        " A1".to_owned(),
        "A1 ".to_owned(),
        "a1".to_owned(),
        "A0".to_owned(),
        "A01".to_owned(),
        "A-1".to_owned(),
        "A1\0".to_owned(),
        "A1; DROP TABLE seat".to_owned(),
        "<script>alert(1)</script>".to_owned(),
        "x".repeat(10_000),
        "A99999999999999999999".to_owned(),
    ];
    for seat in &odd {
        let answer = room.books("Ana", seat).await;
        answer.refuses(NO_SUCH, "seat");
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn a_buyer_who_has_no_proper_name_is_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let names = [
        "".to_owned(),
        " ".to_owned(),
        "\t".to_owned(),
        "\u{a0}\u{2003}".to_owned(),
        "\u{200b}\u{200d}".to_owned(),
        "\0".to_owned(),
        "Ana\0".to_owned(),
        "Ana\nBen".to_owned(),
        "Ana\u{7f}".to_owned(),
        "Ana\u{85}".to_owned(),
        "x".repeat(65),
        "😀".repeat(65),
        "x".repeat(10_000),
    ];
    for name in &names {
        let answer = untouched.room.books(name, "A1").await;
        answer.is("invalid-field").refuses(INVALID, "buyer");
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn fields_of_a_wrong_type_are_named(database: Database) {
    let untouched = Untouched::on(database).await;
    let room = &untouched.room;
    let bookings = [
        (json!({"seat": "A1"}), "buyer"),
        (json!({"buyer": "Ana"}), "seat"),
        (json!({"seat": "A1", "buyer": null}), "buyer"),
        (json!({"seat": "A1", "buyer": 7}), "buyer"),
        (json!({"seat": "A1", "buyer": ["Ana"]}), "buyer"),
        (json!({"seat": 1, "buyer": "Ana"}), "seat"),
        (json!({"seat": {"row": "A"}, "buyer": "Ana"}), "seat"),
        (
            json!({"seat": "A1", "buyer": "Ana", "attempt": 7}),
            "attempt",
        ),
        (
            json!({"seat": "A1", "buyer": "Ana", "attempt": "7"}),
            "attempt",
        ),
        (
            json!({"seat": "A1", "buyer": "Ana", "pause": "after_read"}),
            "pause",
        ),
    ];
    for (body, field) in bookings {
        let answer = room.attempts("bookings", body).await;
        answer.is("invalid-field").refuses(INVALID, field);
        untouched.took_no_lock(&answer);
    }
    let transfers = [
        (json!({"to": "bob", "amount": "1.00"}), "from"),
        (json!({"from": "alice", "amount": "1.00"}), "to"),
        (json!({"from": "alice", "to": "bob"}), "amount"),
        (json!({"from": true, "to": "bob", "amount": "1.00"}), "from"),
    ];
    for (body, field) in transfers {
        let answer = room.attempts("transfers", body).await;
        answer.is("invalid-field").refuses(INVALID, field);
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn bodies_that_are_no_json_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"}".to_vec(),
        b"{".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"A1\"".to_vec(),
        b"{\"seat\":\"A1\",\"buyer\":\"An".to_vec(),
        b"{\"seat\":\"A1\",\"buyer\":\"Ana\"} and more".to_vec(),
        b"{seat: 'A1', buyer: 'Ana'}".to_vec(),
        b"{\"seat\":\"A1\",\"buyer\":\"\\ud800\"}".to_vec(),
        b"{\"seat\":\"A1\",\"buyer\":\"\xff\xfe\"}".to_vec(),
        b"\xef\xbb\xbf{\"seat\":\"A1\",\"buyer\":\"Ana\"".to_vec(),
        vec![b'['; 50_000],
        vec![b'['; 100_000],
        [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
        "{\"seat\":".repeat(50_000).into_bytes(),
        [
            b"{\"seat\":\"A1\",\"buyer\":\"Ana\",\"pause\":".to_vec(),
            vec![b'['; 10_000],
        ]
        .concat(),
    ];
    for body in bodies {
        // What is too long may be refused as such before it is read.
        let fine: &[u16] = if body.len() < 60_000 {
            &[400, 422]
        } else {
            &[400, 413, 422]
        };
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        for path in ["/bookings", "/transfers"] {
            let answer = untouched
                .room
                .posts(path, Some("application/json"), body.clone())
                .await;
            assert!(fine.contains(&answer.status), "{shown}: {answer:?}");
            answer.problem();
            untouched.took_no_lock(&answer);
        }
        let room = &untouched.room;
        let answer = room
            .posts("/races", Some("application/json"), body.clone())
            .await;
        assert!(fine.contains(&answer.status), "{shown}: {answer:?}");
        answer.problem();
    }
    untouched.is_untouched().await;
}

async fn bodies_of_another_kind_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let body = r#"{"seat":"A1","buyer":"Ana"}"#;
    let kinds = [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("text/html"),
        Some("application/xml"),
        Some("jason"),
    ];
    for kind in kinds {
        let answer = untouched.room.posts("/bookings", kind, body).await;
        assert_eq!(answer.status, 415, "{kind:?}: {answer:?}");
        answer.problem();
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

/// A list of values in the right order is no object, whatever a lenient reader makes of it.
async fn lists_are_no_objects(database: Database) {
    let untouched = Untouched::on(database).await;
    let json = Some("application/json");
    let bodies = [
        ("/bookings", r#"["A1","Ana",null,null]"#),
        (
            "/bookings",
            r#"{"seat":"A1","buyer":"Ana","pause":["after_read"]}"#,
        ),
        ("/transfers", r#"["alice","bob","1.00",null,null]"#),
        ("/races", r#"["one-seat"]"#),
    ];
    for (path, body) in bodies {
        let answer = untouched.room.posts(path, json, body).await;
        answer.refuses(INVALID, "object");
    }
    untouched
        .patched(json!([false]))
        .await
        .refuses(INVALID, "object");
    untouched
        .room
        .is_made(json!([]))
        .await
        .refuses(INVALID, "object");
    let wallets = json!({"wallets": [["zoe", "1.00"]]});
    untouched
        .room
        .is_made(wallets)
        .await
        .refuses(INVALID, "object");
    untouched.is_untouched().await;
}

async fn json_of_any_spelling_of_its_type_is_taken(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("spelling").await;
    let kinds = [
        "application/json",
        "application/json;charset=UTF-8",
        "Application/JSON",
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let body = json!({"seat": format!("A{}", number + 1), "buyer": "Ana"}).to_string();
        room.posts("/bookings", Some(kind), body).await.is("booked");
    }
}

async fn bodies_that_are_too_large_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let large = json!({"seat": "A1", "buyer": "x".repeat(5_000_000)}).to_string();
    for path in ["/bookings", "/transfers", "/races"] {
        // A server may answer and close before the whole body was sent; then there is no answer to look at.
        let answer = untouched
            .room
            .tries_to_post(path, Some("application/json"), large.clone())
            .await;
        match answer {
            Ok(answer) => {
                assert_eq!(answer.status, 413, "{path}: {answer:?}");
                answer.problem();
            }
            Err(error) => println!("{path} was closed: {error}"),
        }
    }
    untouched.is_untouched().await;
}

async fn amounts_that_are_no_amounts_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let texts = [
        "",
        " ",
        "-1",
        "-1.00",
        "0",
        "0.00",
        "-0",
        "0.001",
        "1.001",
        "1.000",
        "1e3",
        "1E2",
        "NaN",
        "inf",
        "Infinity",
        " 5",
        "5 ",
        "+5",
        "1,50",
        "1_000",
        "1 000",
        "1.2.3",
        "0x10",
        "٥",
        "５",
        "five",
        "5\0",
        "$5",
        "5€",
        "1111111111111111111111111111111111111111",
        "1000000000.00",
        "999999999.995",
        "-999999999.99",
        "0.0000000000000000000000000001",
        "79228162514264337593543950336",
    ];
    let amounts = texts.iter().map(|text| json!(text));
    let of_other_types = [
        json!(5),
        json!(5.0),
        json!(-1),
        json!(1e300),
        json!(null),
        json!(true),
        json!([]),
        json!({}),
    ];
    for amount in amounts.chain(of_other_types) {
        let body = json!({"from": "alice", "to": "bob", "amount": amount});
        let answer = untouched.room.attempts("transfers", body).await;
        assert_eq!(answer.status, 422, "{amount}: {answer:?}");
        answer.is("invalid-field").refuses(INVALID, "amount");
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn amounts_are_never_rounded(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("exact").await;
    for (amount, left) in [
        ("0.01", "99.99"),
        ("0.1", "99.89"),
        ("33.33", "66.56"),
        ("1", "65.56"),
        ("65.56", "0.00"),
    ] {
        room.transfers("alice", "bob", amount)
            .await
            .is("transferred");
        assert_eq!(room.balance("alice").await, left, "after {amount}");
    }
    let answer = room.transfers("alice", "bob", "0.01").await;
    answer.is("insufficient-funds");
    assert_eq!(room.balance("bob").await, "200.00");
    room.audit().await.is_clean_after(5);
}

async fn wallets_that_do_not_exist_are_named(database: Database) {
    let untouched = Untouched::on(database).await;
    let room = &untouched.room;
    let nobody = room.transfers("nobody", "bob", "1.00").await;
    nobody.is("not-found").refuses(&["not-found"], "nobody");
    untouched.took_no_lock(&nobody);
    let nobody = room.transfers("alice", "Alice", "1.00").await;
    nobody.is("not-found").refuses(&["not-found"], "Alice");
    untouched.took_no_lock(&nobody);
    let odd = [
        "".to_owned(),
        " ".to_owned(),
        "\0".to_owned(),
        "bob\0".to_owned(),
        "x".repeat(10_000),
        "<b>".to_owned(),
    ];
    for wallet in &odd {
        let answer = room.transfers(wallet, "bob", "1.00").await;
        answer.refuses(NO_SUCH, "from");
        untouched.took_no_lock(&answer);
        let answer = room.transfers("alice", wallet, "1.00").await;
        answer.refuses(NO_SUCH, "to");
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn nobody_transfers_to_himself(database: Database) {
    let untouched = Untouched::on(database).await;
    let answer = untouched.room.transfers("alice", "alice", "1.00").await;
    answer.is("invalid-field").refuses(INVALID, "to");
    untouched.took_no_lock(&answer);
    untouched.is_untouched().await;
}

/// Each amount is allowed, and their sum may be too much: refused or exact, and never broken.
async fn a_wallet_that_would_overflow_breaks_nothing(database: Database) {
    let world = World::shared(database).await;
    let wallets: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("rich-{number}"), "balance": "999999999.99"}))
        .collect();
    let room = world.room_of("overflow", json!({"wallets": wallets})).await;
    let mut done = 0;
    for number in 1..20 {
        let answer = room
            .transfers(&format!("rich-{number}"), "rich-0", "999999999.99")
            .await;
        assert!(answer.status < 500, "{answer:?}");
        done += u64::from(answer.status == 201);
    }
    room.audit().await.is_clean_after(done);
}

async fn pauses_out_of_range_are_named(database: Database) {
    let untouched = Untouched::on(database).await;
    let pauses = [
        (json!({"at": "before_lunch"}), "at"),
        (json!({"at": 7}), "at"),
        (json!({"gate": "g"}), "at"),
        (json!({"at": "after_read", "ms": -1}), "ms"),
        (json!({"at": "after_read", "ms": 60_001}), "ms"),
        (json!({"at": "after_read", "ms": 1.5}), "ms"),
        (json!({"at": "after_read", "ms": "5"}), "ms"),
        (json!({"at": "after_read", "gate": 7}), "gate"),
        (
            json!({"at": "after_read", "gate": "x".repeat(10_000)}),
            "gate",
        ),
        (json!({"at": "after_read", "freeze": "yes"}), "freeze"),
    ];
    for (pause, field) in pauses {
        let answer = untouched.room.books("Ana", "A1").with("pause", pause).await;
        answer.is("invalid-field").refuses(INVALID, field);
        untouched.took_no_lock(&answer);
    }
    untouched.is_untouched().await;
}

async fn switches_out_of_range_are_named(database: Database) {
    let untouched = Untouched::on(database).await;
    let wrong = [
        ("locking", json!("yes")),
        ("locking", json!(1)),
        ("locking", json!(null)),
        ("lock", json!("paper")),
        ("lock", json!("")),
        ("lock", json!(7)),
        ("lock", json!("Redis")),
        ("fencing", json!("sometimes")),
        ("fencing", json!(true)),
        ("compare", json!("false")),
        ("order", json!("random")),
        ("release", json!("deaf")),
        ("waiting", json!("forever")),
        ("ttl_ms", json!(99)),
        ("ttl_ms", json!(0)),
        ("ttl_ms", json!(-1)),
        ("ttl_ms", json!(600_001)),
        ("ttl_ms", json!("2000")),
        ("ttl_ms", json!(2000.5)),
        ("ttl_ms", json!(1e30)),
        ("renew", json!(0)),
        ("wait_ms", json!(-1)),
        ("wait_ms", json!(60_001)),
        ("wait_ms", json!(null)),
        ("think_ms", json!(-1)),
        ("think_ms", json!(10_001)),
        ("think_ms", json!([100])),
    ];
    for (switch, value) in wrong {
        let answer = untouched.patched(json!({switch: value})).await;
        answer.is("invalid-field").refuses(INVALID, switch);
    }
    untouched.is_untouched().await;
}

async fn switches_that_nobody_knows_are_named(database: Database) {
    let untouched = Untouched::on(database).await;
    for switch in ["colour", "Locking", "ttl", "epoch"] {
        let answer = untouched.patched(json!({switch: 1})).await;
        answer.is("invalid-field").refuses(INVALID, switch);
    }
    untouched.is_untouched().await;
}

/// Known, but not configured or not compiled in.
async fn locks_that_are_not_there_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    for lock in ["redlock", "dynamodb", "zookeeper", "etcd"] {
        let answer = untouched.patched(json!({"lock": lock})).await;
        answer.is("invalid-field").refuses(INVALID, lock);
    }
    untouched.is_untouched().await;
}

async fn a_wrong_switch_leaves_the_right_ones_unchanged(database: Database) {
    let untouched = Untouched::on(database).await;
    for wrong in [
        json!({"think_ms": 7, "wait_ms": -1}),
        json!({"think_ms": 7, "colour": "red"}),
    ] {
        untouched.patched(wrong).await.is("invalid-field");
    }
    untouched.is_untouched().await;
}

async fn rooms_of_an_impossible_shape_are_refused(database: Database) {
    let untouched = Untouched::on(database).await;
    let wallet =
        |name: &str, balance: Value| json!({"wallets": [{"name": name, "balance": balance}]});
    let shapes = [
        (json!({"rows": 101}), "rows"),
        (json!({"rows": -1}), "rows"),
        (json!({"rows": "5"}), "rows"),
        (json!({"rows": 1.5}), "rows"),
        (json!({"rows": 1e30}), "rows"),
        (json!({"columns": 1001}), "columns"),
        (json!({"columns": -1}), "columns"),
        (json!({"columns": null}), "columns"),
        (json!({"wallets": "alice"}), "wallets"),
        (json!({"wallets": [7]}), "wallets"),
        (json!({"wallets": [{"balance": "1.00"}]}), "name"),
        (wallet("", json!("1.00")), "name"),
        (wallet(" ", json!("1.00")), "name"),
        (wallet("a\0", json!("1.00")), "name"),
        (wallet(&"x".repeat(65), json!("1.00")), "name"),
        (wallet(&"x".repeat(10_000), json!("1.00")), "name"),
        (wallet("zoe", json!("-1")), "balance"),
        (wallet("zoe", json!("1.005")), "balance"),
        (wallet("zoe", json!(100)), "balance"),
        (wallet("zoe", json!("1000000000.00")), "balance"),
        (wallet("zoe", json!("1e3")), "balance"),
        (wallet("zoe", json!("NaN")), "balance"),
        (
            json!({"wallets": [{"name": "zoe", "balance": "1.00"}, {"name": "zoe", "balance": "2.00"}]}),
            "zoe",
        ),
    ];
    for (shape, field) in shapes {
        let answer = untouched.room.is_made(shape).await;
        answer.is("invalid-field").refuses(INVALID, field);
    }
    untouched.is_untouched().await;
}

async fn rooms_of_an_impossible_name_are_refused(database: Database) {
    let world = World::shared(database).await;
    let long = "x".repeat(41);
    let names = [
        "UPPER",
        "a_b",
        "a.b",
        "a%20b",
        "%00",
        "a%2Fb",
        "%3Cscript%3E",
        "caf%C3%A9",
        "%FF",
        long.as_str(),
    ];
    for name in names {
        let room = world.no_room(name);
        let answer = room.is_made(json!({})).await;
        answer.refuses(NO_SUCH, "room");
        for answer in [
            room.asks(Method::GET, "", None).await,
            room.asks(Method::DELETE, "", None).await,
            room.books("Ana", "A1").await,
        ] {
            assert!((400..500).contains(&answer.status), "{name}: {answer:?}");
            answer.problem();
        }
    }
    let longest = world.no_room(&"y".repeat(40));
    assert_eq!(longest.is_made(json!({})).await.status, 201);
    assert_eq!(longest.asks(Method::DELETE, "", None).await.status, 204);
}

async fn names_of_any_script_are_taken(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("scripts").await;
    let longest = "😀".repeat(64);
    let names = [
        "张伟",
        "Zoë",
        "👩‍👩‍👧",
        "O'Brien",
        "\"; --",
        "<b>Ben</b>",
        longest.as_str(),
    ];
    for (number, name) in names.into_iter().enumerate() {
        let seat = format!("A{}", number + 1);
        room.books(name, &seat).await.is("booked");
        let looks = room.looks().await;
        assert_eq!(looks["seats"][number]["buyer"], name, "{looks}");
    }
}

impl Untouched {
    async fn patched(&self, switches: Value) -> Answer {
        self.room
            .asks(Method::PATCH, "/switches", Some(switches))
            .await
    }
}
