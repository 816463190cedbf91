//! The page is small, and even the page of a large room comes soon.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::support::{A, Database, World};

on_both_databases!(
    the_page_of_main_with_all_it_loads_weighs_little,
    the_page_of_ten_thousand_seats_begins_soon,
);

/// The page of `main` with style, icon and scripts, as they go over the line.
const MOST_BYTES: usize = 100_000;

/// Until the first byte of a large room's page, the median of so many.
const FIRST_BYTE: Duration = Duration::from_millis(200);
const TIMES: usize = 11;

/// How much longer it may take here: a build without optimisation, and other tests on the same few cores.
const HERE: u32 = 10;

async fn the_page_of_main_with_all_it_loads_weighs_little(database: Database) {
    let world = World::shared(database).await;
    let page = world.get(A, "/").await.text;
    let loaded = loaded_by(&page);
    let scripts = loaded.iter().filter(|path| path.ends_with(".js")).count();
    assert_eq!(scripts, scripts_in(Path::new("static")), "{loaded:?}");
    let mut bytes = 0;
    for path in ["/"].into_iter().chain(loaded) {
        let request = world.request(A, Method::GET, path);
        let answer = request.header("accept-encoding", "gzip, br").send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-encoding"], "gzip", "{path}");
        bytes += answer.bytes().await.expect("a body").len();
    }
    println!("the page of main weighs {bytes} bytes, promised at most {MOST_BYTES}");
    assert!(bytes <= MOST_BYTES, "{bytes}");
}

/// What a browser asks for when it shows a page.
fn loaded_by(page: &str) -> BTreeSet<&str> {
    let attributes = page.split('"').filter(|text| text.starts_with("/static/"));
    attributes.collect()
}

fn scripts_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let scripts = paths.map(|path| match path.is_dir() {
        true => scripts_in(&path),
        false => usize::from(path.extension().is_some_and(|kind| kind == "js")),
    });
    scripts.sum()
}

async fn the_page_of_ten_thousand_seats_begins_soon(database: Database) {
    let world = World::shared(database).await;
    let shape = json!({"rows": 100, "columns": 100});
    let room = world.room_of("large", shape).await;
    let path = format!("/rooms/{}", room.name);
    let mut measured = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        let request = world.request(A, Method::GET, &path);
        let answer = request.header("accept-encoding", "gzip").send().await;
        let mut answer = answer.expect("an answer");
        let first = answer.chunk().await.expect("a body");
        measured.push(start.elapsed());
        assert!(first.is_some_and(|bytes| !bytes.is_empty()));
    }
    measured.sort();
    let median = measured[TIMES / 2];
    println!(
        "first bytes of a page of 10,000 seats: {measured:.1?}; promised of their median {median:.1?}: {FIRST_BYTE:?}"
    );
    assert!(median <= FIRST_BYTE * HERE, "{median:?}");
}
