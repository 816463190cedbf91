//! Two windows on two replicas, and many tabs.

use std::time::{Duration, Instant};

use crate::browser::{Browser, address};
use crate::support::{A, B, Database, World, promised};

on_both_databases!(
    a_booking_is_seen_in_the_window_of_the_other_replica,
    eight_tabs_of_one_browser_all_work,
);

/// From the answer to what the page shows.
const SEEN: Duration = Duration::from_secs(1);

/// A browser opens six connections to a host, for all its tabs together.
const TABS: usize = 8;

async fn a_booking_is_seen_in_the_window_of_the_other_replica(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("windows").await;
    let browser = Browser::starts().await;
    let first = browser.window().await;
    browser.opens(&world, A, &room).await;
    let second = browser.opens_window().await;
    browser.opens(&world, B, &room).await;
    // From here on both listen.
    room.books("Zoe", "E8").on(A).await.is("booked");
    for window in [&first, &second] {
        browser.turns_to(window).await;
        browser.shows("E8", &["Zoe"]).await;
    }

    let pairs = [(A, &second, "A1"), (B, &first, "A2"), (A, &second, "A3")];
    for (through, window, seat) in pairs {
        browser.turns_to(window).await;
        room.books("Ana", seat).on(through).await.is("booked");
        let answered = Instant::now();
        browser.shows(seat, &["Ana"]).await;
        let what = format!("a booking through {} in the other window", through.name());
        promised(&what, SEEN, answered.elapsed());
    }
    room.transfers("alice", "bob", "80.00")
        .on(A)
        .await
        .is("transferred");
    browser.reads("#wallets", "20.00").await;
    browser.reads("#audit", "in 5 attempts").await;
    browser.was_well_behaved().await;
}

async fn eight_tabs_of_one_browser_all_work(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("tabs").await;
    let browser = Browser::starts().await;
    let first = browser.window().await;
    browser.opens(&world, A, &room).await;
    for _ in 1..TABS {
        browser.opens_tab().await;
        browser.opens(&world, A, &room).await;
    }
    browser.clicks("#seats button[value=C4]").await;
    let buyer = browser.element("#buyer").await.prop("value").await;
    let buyer = buyer.expect("a field").expect("a name");
    browser.shows("C4", &[&buyer]).await;
    assert_eq!(room.audit().await.attempts, 1);

    browser.turns_to(&first).await;
    browser.shows("C4", &[&buyer]).await;
    let here = browser.driver().current_url().await.expect("an address");
    assert_eq!(here.as_str(), address(&world, A, &room));
    browser.was_well_behaved().await;
}
