//! Each race by its button, with its diagram: what is marked with the guard off, and what is not with it on.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::support::{A, Database, Room, World};

on_both_databases!(
    one_seat,
    lost_update,
    crossing,
    crowd,
    paused_holder_without_fence,
    paused_holder_with_fence,
    a_race_that_runs_is_said_to_run_and_another_is_refused,
    a_race_that_ended_while_the_page_was_hidden_is_told,
    a_link_to_a_race_says_when_another_one_was_run_since,
);

/// Long enough that two who are sent at once are in the same section, on any machine.
const THINK_MS: u64 = 3000;

/// Longer than anybody thinks, on a machine that stands still meanwhile.
const TTL_MS: u64 = 60_000;

/// A room with these switches, and its page.
async fn opened(database: Database, switches: Value) -> (World, Room, Browser) {
    let world = World::shared(database).await;
    let room = world.room_with("race", switches).await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    (world, room, browser)
}

async fn a_link_to_a_race_says_when_another_one_was_run_since(database: Database) {
    let (world, room, browser) = opened(database, json!({"think_ms": 50})).await;
    browser.races("one-seat").await;
    let link = "return document.querySelector('#diagram .saving a').href";
    let link = browser.asks(link, Vec::new()).await;
    let link = link.as_str().expect("an address");
    assert!(link.starts_with(&world.url(A)), "{link}");

    browser.goes_to(link).await;
    browser.has_drawn_the_race().await;
    assert_eq!(browser.count("#race .warning").await, 0);

    // It is asked for once more, and stays as it was looked at.
    browser
        .clicks("#diagram button[aria-label='Zoom in']")
        .await;
    let width = "return document.querySelector('#diagram .chart-scroll svg').getAttribute('width')";
    let zoomed = browser.asks(width, Vec::new()).await;
    let again = "for (const type of ['pagehide', 'pageshow']) {
            window.dispatchEvent(new Event(type));
        }";
    browser.asks(again, Vec::new()).await;
    let asked = "return performance.getEntriesByType('resource')
        .filter(({ name }) => name.endsWith('/races/last')).length > 1";
    browser.finds("the race is asked for again", asked).await;
    room.books("Zoe", "E8").await.is("booked");
    browser.shows("E8", &["Zoe"]).await;
    assert_eq!(browser.asks(width, Vec::new()).await, zoomed);

    browser.races("crossing").await;
    // Or the browser would stay where it is.
    browser.goes_to(&format!("{}/rooms", world.url(A))).await;
    browser.goes_to(link).await;
    browser
        .reads("#race .warning", "Another race was run since")
        .await;
    browser.reads("#race h2", "Crossing transfers").await;
    browser.has_drawn_the_race().await;

    // What is drawn anew meanwhile takes neither the words away nor the drawing.
    browser.clicks("#toggle .flip").await;
    browser.reads("#toggle", "Locking is off").await;
    browser
        .reads("#race .warning", "Another race was run since")
        .await;
    browser.has_drawn_the_race().await;
    browser.was_well_behaved().await;
}

async fn one_seat(database: Database) {
    let switches =
        json!({"locking": false, "think_ms": THINK_MS, "ttl_ms": TTL_MS, "wait_ms": 30_000});
    let (world, room, browser) = opened(database, switches).await;
    browser.races("one-seat").await;
    browser.shows("A1", &["Ana", "Ben"]).await;
    browser.reads("#seats h2", "1 of them more than once").await;
    browser.reads("#audit", "A1 was sold").await;
    browser
        .reads("#race .cause.wrong", "No lock was taken")
        .await;
    let overlaps = browser.marks(".overlap.tone-wrong").await;
    assert_eq!(overlaps.len(), 2, "{overlaps:?}");
    for (overlap, who) in overlaps.iter().zip(["Ana and Ben", "Ben and Ana"]) {
        let both = ["Ana and Ben", "Ben and Ana"];
        assert!(
            both.iter().any(|two| overlap.starts_with(two)),
            "{who}: {overlap}"
        );
    }
    assert_eq!(browser.marks(".wrote.tone-wrong").await.len(), 1);

    room.switches(json!({"locking": true})).await;
    // The first race's seats and drawing must not pass for the second one's.
    room.resets().await;
    browser.opens(&world, A, &room).await;
    browser.races("one-seat").await;
    browser.reads("#seats h2", "1 of 40 seats sold").await;
    let buyers = browser.buyers("A1").await;
    assert_eq!(buyers.len(), 1, "{buyers:?}");
    browser
        .reads("#race .cause", "The lock let one in after the other")
        .await;
    assert_eq!(browser.count("td.often").await, 0);
    assert_eq!(browser.marks(".tone-wrong").await, [""; 0]);
    browser.was_well_behaved().await;
}

async fn lost_update(database: Database) {
    let switches =
        json!({"locking": false, "think_ms": THINK_MS, "ttl_ms": TTL_MS, "wait_ms": 30_000});
    let (world, room, browser) = opened(database, switches).await;
    browser.races("lost-update").await;
    browser.reads("#wallets tr.wrong", "alice").await;
    browser.reads("#audit.wrong", "80.00").await;
    browser
        .reads("#race .cause.wrong", "No lock was taken")
        .await;
    let overlaps = browser.marks(".overlap.tone-wrong").await;
    assert_eq!(overlaps.len(), 2, "{overlaps:?}");

    room.switches(json!({"locking": true})).await;
    // The first race's seats and drawing must not pass for the second one's.
    room.resets().await;
    browser.opens(&world, A, &room).await;
    browser.races("lost-update").await;
    browser.reads("#audit.clean", "✓").await;
    assert_eq!(browser.count("#wallets tr.wrong").await, 0);
    assert_eq!(browser.marks(".tone-wrong").await, [""; 0]);
    browser.was_well_behaved().await;
}

async fn crossing(database: Database) {
    let switches =
        json!({"order": "as_given", "think_ms": THINK_MS, "ttl_ms": TTL_MS, "wait_ms": 6000});
    let (world, room, browser) = opened(database, switches).await;
    browser.races("crossing").await;
    browser.reads("#race .cause", "a circle").await;
    browser.reads("#race table", "gave up").await;
    assert!(!browser.marks(".refused").await.is_empty());

    let switches = json!({"order": "sorted", "think_ms": 50, "wait_ms": 20_000});
    room.switches(switches).await;
    browser.opens(&world, A, &room).await;
    browser.races("crossing").await;
    browser
        .reads("#race .cause", "The lock let one in after the other")
        .await;
    assert_eq!(browser.marks(".refused").await, [""; 0]);
    browser.was_well_behaved().await;
}

async fn crowd(database: Database) {
    let switches =
        json!({"locking": false, "think_ms": THINK_MS, "ttl_ms": TTL_MS, "wait_ms": 30_000});
    let (world, room, browser) = opened(database, switches).await;
    browser.races("crowd").await;
    browser.reads("#seats h2", "more than once").await;
    assert!(browser.count("td.often").await > 0);
    assert!(browser.marks(".overlap.tone-wrong").await.len() >= 2);
    assert_eq!(browser.count("#race table:not(.steps) tbody th").await, 50);

    // What others do takes the focus from nobody who reads. The audit may come after the race's end.
    browser
        .reads("#audit summary", "Which seats and wallets")
        .await;
    let reads = "document.querySelector('#audit summary').focus()";
    browser.asks(reads, Vec::new()).await;
    for seat in ["E7", "E8"] {
        room.books("Zoe", seat).await.is("booked");
        browser.shows(seat, &["Zoe"]).await;
    }
    assert!(browser.has_focus("#audit summary").await);

    let switches = json!({"locking": true, "think_ms": 20, "wait_ms": 30_000});
    room.switches(switches).await;
    // The first race's seats and drawing must not pass for the second one's.
    room.resets().await;
    browser.opens(&world, A, &room).await;
    browser.races("crowd").await;
    browser.reads("#seats h2", "10 of 40 seats sold").await;
    assert_eq!(browser.count("td.often").await, 0);
    assert_eq!(browser.marks(".tone-wrong").await, [""; 0]);
    browser.was_well_behaved().await;
}

async fn paused_holder_without_fence(database: Database) {
    let switches = json!({"fencing": "off", "ttl_ms": 1000, "wait_ms": 20_000});
    let (_world, _room, browser) = opened(database, switches).await;
    browser.races("paused-holder").await;
    browser.shows("A1", &["Ana", "Ben"]).await;
    browser
        .reads("#race .cause.wrong", "nothing checked it")
        .await;
    let late = browser.marks(".wrote.tone-wrong").await;
    assert!(late.len() == 1 && late[0].starts_with("Ana"), "{late:?}");
    assert_eq!(browser.marks(".refused").await, [""; 0]);
    browser.was_well_behaved().await;
}

async fn paused_holder_with_fence(database: Database) {
    let switches = json!({"ttl_ms": 1000, "wait_ms": 20_000});
    let (_world, _room, browser) = opened(database, switches).await;
    browser.races("paused-holder").await;
    browser.shows("A1", &["Ben"]).await;
    browser
        .reads("#race .cause", "was refused by the fence")
        .await;
    let refused = browser.marks(".refused").await;
    assert!(
        refused.len() == 1 && refused[0].starts_with("Ana is refused"),
        "{refused:?}"
    );
    assert_eq!(browser.count("td.often").await, 0);
    browser.was_well_behaved().await;
}

/// Begun by somebody else.
async fn a_race_that_runs_is_said_to_run_and_another_is_refused(database: Database) {
    let switches = json!({"ttl_ms": 10_000, "wait_ms": 40_000});
    let (_world, room, browser) = opened(database, switches).await;
    // From here on it listens.
    room.books("Zoe", "E8").await.is("booked");
    browser.shows("E8", &["Zoe"]).await;
    let theirs = room.clone();
    let race = tokio::spawn(async move { theirs.race("paused-holder").await });
    let waits = "another can start when it has ended";
    browser.reads("#races", waits).await;
    browser.clicks("#races button[value=one-seat]").await;
    browser.reads("#problem", "A race is under way").await;

    let race = race.await.expect("it ends");
    assert_eq!(race["attempts"].as_array().map(Vec::len), Some(2));
    browser.has_raced("paused-holder").await;
    assert!(!browser.text("#races").await.contains(waits));
    let refused = "/races - Failed to load resource: the server responded with a status of 409";
    browser.was_well_behaved_but(&[refused]).await;
}

/// A page that is hidden closes its stream, so it never hears of the end.
async fn a_race_that_ended_while_the_page_was_hidden_is_told(database: Database) {
    let switches = json!({"ttl_ms": 10_000, "wait_ms": 40_000});
    let (world, room, browser) = opened(database, switches).await;
    let page = browser.window().await;
    // From here on it listens.
    room.books("Zoe", "E8").await.is("booked");
    browser.shows("E8", &["Zoe"]).await;
    let theirs = room.clone();
    let race = tokio::spawn(async move { theirs.race("paused-holder").await });
    let waits = "another can start when it has ended";
    browser.reads("#races", waits).await;

    browser.opens_tab().await;
    browser.opens(&world, A, &room).await;
    let race = race.await.expect("it ends");
    assert_eq!(race["attempts"].as_array().map(Vec::len), Some(2));
    // Whoever has heard of what came after the end has heard of the end.
    room.books("Zoe", "E7").await.is("booked");
    browser.shows("E7", &["Zoe"]).await;
    browser.turns_to(&page).await;
    browser.has_raced("paused-holder").await;
    assert!(!browser.text("#races").await.contains(waits));
    browser.was_well_behaved().await;
}
