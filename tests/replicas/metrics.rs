//! `/metrics` counts what happened, exactly, and in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{A, B, Database, PATIENCE, Replica, World, eventually};

on_both_databases!(
    attempts_are_counted_by_kind_and_outcome,
    a_late_holder_is_a_lost_lease_and_a_refused_token,
    what_is_there_now_is_told,
    readers_of_a_stream_are_counted,
    labels_are_few,
);

/// What was scraped: each series with its labels, as it is written, and its value.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    async fn of(world: &World, replica: Replica) -> Self {
        let answer = world.get(replica, "/metrics").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let kind = answer.header("content-type");
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
        Self(parse(&answer.text))
    }

    /// A series that is not there has counted nothing yet.
    fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or_default()
    }

    /// What has changed since, of all that begins so.
    fn since(&self, before: &Self, names: &str) -> BTreeMap<&str, f64> {
        let series = self
            .0
            .iter()
            .filter(|(series, _)| series.starts_with(names));
        let changes = series.map(|(series, value)| (series.as_str(), value - before.get(series)));
        changes.filter(|(_, change)| *change != 0.0).collect()
    }
}

/// Reads the text strictly: each series stands below the HELP and the TYPE of its family, once.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let (mut families, mut helped) = (BTreeMap::new(), BTreeSet::new());
    let mut series = BTreeMap::new();
    assert!(text.ends_with('\n'), "a last line that ends");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("a name and words");
            assert!(
                !words.is_empty() && helped.insert(name.to_owned()),
                "{line}"
            );
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(helped.contains(name), "{line}");
            assert!(
                families.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{line}"
            );
        } else {
            let (labelled, value) = line.rsplit_once(' ').expect("a series and a value");
            let name = labelled.split('{').next().expect("a name");
            assert!(
                family_of(name, &families).starts_with("doublebook_"),
                "{line}"
            );
            assert!(labelled == name || labelled.ends_with('}'), "{line}");
            let value = value.parse().expect("a number");
            assert!(
                series.insert(labelled.to_owned(), value).is_none(),
                "{line}"
            );
        }
    }
    series
}

fn family_of<'a>(name: &'a str, families: &BTreeMap<String, String>) -> &'a str {
    let histogram = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix));
    match histogram {
        Some(family) if families.get(family).is_some_and(|kind| kind == "histogram") => family,
        _ => {
            assert!(families.contains_key(name), "the type of {name}");
            name
        }
    }
}

async fn attempts_are_counted_by_kind_and_outcome(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("counted").await;
    let before = Scrape::of(&world, A).await;
    room.books("Ana", "A1").await.is("booked");
    room.books("Ben", "A2").await.is("booked");
    room.books("Cleo", "A1").await.is("seat-taken");
    room.transfers("alice", "bob", "500.00")
        .await
        .is("insufficient-funds");
    room.transfers("alice", "bob", "5.00")
        .await
        .is("transferred");
    room.books("Dora", "A3").on(B).await.is("booked");
    // Refused before it is an attempt.
    room.books("", "A4").await.is("invalid-field");
    let after = Scrape::of(&world, A).await;
    let attempts = after.since(&before, "doublebook_attempts_total");
    let expected = [
        (
            r#"doublebook_attempts_total{kind="booking",outcome="booked"}"#,
            2.0,
        ),
        (
            r#"doublebook_attempts_total{kind="booking",outcome="seat-taken"}"#,
            1.0,
        ),
        (
            r#"doublebook_attempts_total{kind="transfer",outcome="insufficient-funds"}"#,
            1.0,
        ),
        (
            r#"doublebook_attempts_total{kind="transfer",outcome="transferred"}"#,
            1.0,
        ),
    ];
    assert_eq!(attempts, BTreeMap::from(expected));
    for time in ["wait", "hold", "work"] {
        let name = format!("doublebook_{time}_seconds");
        let counted = after.since(&before, &format!("{name}_count"));
        let redis = format!(r#"{name}_count{{lock="redis"}}"#);
        assert_eq!(counted, BTreeMap::from([(redis.as_str(), 5.0)]));
        let sum = after.get(&format!(r#"{name}_sum{{lock="redis"}}"#));
        assert!(0.0 < sum && sum < 60.0, "seconds: {sum}");
    }
    // Without locks there is only work.
    room.switches(serde_json::json!({"locking": false})).await;
    room.books("Eve", "B1").await.is("booked");
    let last = Scrape::of(&world, A).await;
    let none = BTreeMap::from([(r#"doublebook_work_seconds_count{lock="none"}"#, 1.0)]);
    assert_eq!(last.since(&after, "doublebook_work_seconds_count"), none);
    for name in [
        "doublebook_wait_seconds_count",
        "doublebook_hold_seconds_count",
    ] {
        assert_eq!(last.since(&after, name), BTreeMap::new());
    }
    assert_eq!(
        last.since(&after, "doublebook_leases_lost"),
        BTreeMap::new()
    );
    assert_eq!(
        last.since(&after, "doublebook_tokens_refused"),
        BTreeMap::new()
    );
}

async fn a_late_holder_is_a_lost_lease_and_a_refused_token(database: Database) {
    let world = World::own(database).start().await;
    let switches = serde_json::json!({"ttl_ms": 2000, "fencing": "from_first_read"});
    let room = world.room_with("late", switches).await;
    let before = Scrape::of(&world, A).await;
    let ana = room
        .books("Ana", "A1")
        .pausing_at("before_write")
        .at_gate("g")
        .frozen()
        .starts();
    room.one_waits_at_gate("g", A, "before_write").await;
    room.books("Ben", "A1").on(B).await.is("booked");
    room.opens("g").await;
    ana.answer().await.is("stale-token");
    let after = Scrape::of(&world, A).await;
    let one = |series| BTreeMap::from([(series, 1.0)]);
    assert_eq!(
        after.since(&before, "doublebook_leases_lost"),
        one(r#"doublebook_leases_lost_total{lock="redis"}"#)
    );
    assert_eq!(
        after.since(&before, "doublebook_tokens_refused"),
        one(r#"doublebook_tokens_refused_total{lock="redis"}"#)
    );
    let other = Scrape::of(&world, B).await;
    assert_eq!(
        other.get(r#"doublebook_leases_lost_total{lock="redis"}"#),
        0.0
    );
}

async fn what_is_there_now_is_told(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("now").await;
    let ana = room
        .books("Ana", "A1")
        .pausing_at("after_read")
        .at_gate("g")
        .starts();
    room.one_waits_at_gate("g", A, "after_read").await;
    let ben = room.books("Ben", "A1").starts();
    let now = eventually("a waiter", PATIENCE, async || {
        let now = Scrape::of(&world, A).await;
        match now.get(r#"doublebook_lock_waiters{lock="redis"}"#) {
            1.0 => Ok(now),
            waiters => Err(format!("{waiters} waiters")),
        }
    });
    let (now, _) = now.await;
    assert_eq!(now.get(r#"doublebook_locks_held{lock="redis"}"#), 1.0);
    assert_eq!(now.get("doublebook_attempts_under_way"), 2.0);
    room.opens("g").await;
    ana.answer().await.is("booked");
    ben.answer().await.is("seat-taken");
    room.has_no_lease_left(PATIENCE).await;
    let after = Scrape::of(&world, A).await;
    for series in [
        r#"doublebook_lock_waiters{lock="redis"}"#,
        r#"doublebook_locks_held{lock="redis"}"#,
        "doublebook_attempts_under_way",
        "doublebook_leases_left",
        "doublebook_stream_readers",
    ] {
        assert_eq!(after.0.get(series), Some(&0.0), "{series}");
    }
    let version = format!(
        r#"doublebook_build_info{{version="{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(after.get(&version), 1.0);
}

async fn readers_of_a_stream_are_counted(database: Database) {
    let world = World::own(database).start().await;
    let room = world.room("read").await;
    let path = format!("/api/rooms/{}/live", room.name);
    let stream = world.request(A, reqwest::Method::GET, &path).send();
    let stream = stream.await.expect("a stream");
    let readers = async |wanted: f64| {
        eventually("the readers", PATIENCE, async || {
            let scrape = Scrape::of(&world, A).await;
            let count = scrape.get("doublebook_stream_readers");
            if count == wanted {
                Ok(())
            } else {
                Err(format!("{count} readers"))
            }
        })
        .await
    };
    readers(1.0).await;
    drop(stream);
    readers(0.0).await;
}

/// No name that people give becomes a label.
async fn labels_are_few(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("secretroom").await;
    room.books("Secretbuyer", "A1").await.is("booked");
    let scrape = Scrape::of(&world, A).await;
    let label = |series: &str| -> Vec<String> {
        let labels = series
            .split_once('{')
            .map(|(_, rest)| rest.trim_end_matches('}'));
        let pairs = labels.into_iter().flat_map(|labels| labels.split(','));
        pairs
            .filter_map(|pair| pair.split('=').next())
            .map(str::to_owned)
            .collect()
    };
    let names: BTreeSet<String> = scrape.0.keys().flat_map(|series| label(series)).collect();
    let few = ["kind", "le", "lock", "outcome", "version"];
    assert!(
        names.iter().all(|name| few.contains(&name.as_str())),
        "{names:?}"
    );
    let text = scrape.0.keys().cloned().collect::<String>();
    assert!(!text.contains("ecretroom") && !text.contains("ecretbuyer") && !text.contains("A1"));
}
