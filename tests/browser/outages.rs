//! Replicas that stand still or die while the page is open: it goes on, and says so.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::browser::{Browser, address};
use crate::support::{A, B, Database, Room, World, promised};

on_both_databases!(
    another_replica_that_stands_still_is_said_to_be_silent,
    another_replica_that_was_killed_is_said_to_be_gone,
    a_page_whose_own_replica_stands_still_says_so,
    a_page_whose_own_replica_was_killed_goes_on_when_it_is_back,
    a_page_whose_own_replica_was_killed_leads_to_another,
    a_page_that_cannot_have_the_room_asks_for_it_again,
);

/// From what happened to what the page says of the other replica.
const SAID: Duration = Duration::from_secs(2);

/// From an answer to what the page shows.
const SEEN: Duration = Duration::from_secs(1);

/// What browsers complain about when a connection breaks off or nobody listens.
const BROKEN: [&str; 2] = ["net::ERR_", "Failed to load resource"];

async fn another_replica_that_stands_still_is_said_to_be_silent(database: Database) {
    let (world, room, browser) = opened(database).await;
    let start = Instant::now();
    world.process(B).signal(Signal::SIGSTOP);
    browser.reads(OF_B, "B is silent").await;
    promised("B is said to be silent", SAID, start.elapsed());
    browser.reads("#said", "Replica B is silent").await;
    browser.goes_on(&room, "A1", "A2").await;
    browser.races("one-seat").await;
    let went = "Replica B did not answer when the race began: all attempts went to A.";
    browser.reads("#race", went).await;

    let start = Instant::now();
    world.process(B).signal(Signal::SIGCONT);
    browser.reads(OF_B, "B alive").await;
    promised("B is said to be alive again", SAID, start.elapsed());
    room.books("Zoe", "A3").on(B).await.is("booked");
    browser.shows("A3", &["Zoe"]).await;
    browser.was_well_behaved().await;
}

async fn another_replica_that_was_killed_is_said_to_be_gone(database: Database) {
    let (world, room, browser) = opened(database).await;
    let start = Instant::now();
    world.kills(B);
    browser.reads(OF_B, "B does not answer").await;
    promised("B is said to be gone", SAID, start.elapsed());
    browser.reads("#said", "Replica B does not answer").await;
    browser.goes_on(&room, "A1", "A2").await;

    world.starts(B).await;
    let start = Instant::now();
    browser.reads(OF_B, "B alive").await;
    promised("B is said to be alive again", SAID, start.elapsed());
    room.books("Zoe", "A3").on(B).await.is("booked");
    browser.shows("A3", &["Zoe"]).await;
    browser.was_well_behaved().await;
}

/// Its connection stands, so only its silence tells.
async fn a_page_whose_own_replica_stands_still_says_so(database: Database) {
    let (world, room, browser) = opened(database).await;
    world.process(A).signal(Signal::SIGSTOP);
    browser
        .reads("#link-state", "Replica A does not answer")
        .await;
    browser.reads("#replicas", "A does not answer").await;
    room.books("Zoe", "A1").on(B).await.is("booked");

    world.process(A).signal(Signal::SIGCONT);
    browser.says_nothing_of_its_link().await;
    browser.reads("#replicas", "A alive").await;
    browser.shows("A1", &["Zoe"]).await;
    browser.goes_on(&room, "A2", "A3").await;
    browser.was_well_behaved_but(&BROKEN).await;
}

/// What happened meanwhile is seen, and the race that was drawn is still there.
async fn a_page_whose_own_replica_was_killed_goes_on_when_it_is_back(database: Database) {
    let (world, room, browser) = opened(database).await;
    browser.races("one-seat").await;
    world.kills(A);
    browser
        .reads("#link-state", "Replica A does not answer")
        .await;
    room.books("Zoe", "B1").on(B).await.is("booked");

    world.starts(A).await;
    browser.says_nothing_of_its_link().await;
    browser.shows("B1", &["Zoe"]).await;
    browser.goes_on(&room, "B2", "B3").await;
    assert!(browser.count("#diagram svg .item").await > 0);
    browser.was_well_behaved_but(&BROKEN).await;
}

async fn a_page_whose_own_replica_was_killed_leads_to_another(database: Database) {
    let (world, room, browser) = opened(database).await;
    browser.fills("#buyer", "Maria").await;
    world.kills(A);
    browser.reads("#link-state", "Go on at replica B").await;
    browser.clicks("#link-state a").await;
    browser.arrives_at(&address(&world, B, &room)).await;
    browser.reads("#replicas", "A does not answer").await;
    // Who was typed in there is the buyer here.
    browser.clicks("#seats button[value=C1]").await;
    browser.shows("C1", &["Maria"]).await;
    room.books("Zoe", "C2").on(B).await.is("booked");
    browser.shows("C2", &["Zoe"]).await;

    world.starts(A).await;
    browser.reads("#replicas", "A alive").await;
    browser.was_well_behaved_but(&BROKEN).await;
}

/// The room was reset while the page was hidden, so all of it is asked for when the page is seen again.
async fn a_page_that_cannot_have_the_room_asks_for_it_again(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("again").await.seen_from(B);
    let browser = Browser::starts().await;
    let page = browser.window().await;
    browser.opens(&world, A, &room).await;
    room.books("Zoe", "E8").on(B).await.is("booked");
    browser.shows("E8", &["Zoe"]).await;
    let fails_once = "const { fetch } = window;
        window.fetch = (address, options) => {
            if (!address.endsWith(arguments[0])) {
                return fetch(address, options);
            }
            Object.assign(window, { fetch, hasFailed: true });
            return Promise.reject(new TypeError('no answer'));
        };";
    let own = format!("/api/rooms/{}", room.name);
    browser.asks(fails_once, vec![own.into()]).await;

    browser.opens_tab().await;
    room.resets().await;
    browser.turns_to(&page).await;
    browser.shows("E8", &[]).await;
    // It is still the same page.
    assert_eq!(
        browser.asks("return window.hasFailed", Vec::new()).await,
        true
    );
    browser.was_well_behaved().await;
}

/// What the header says of replica B.
const OF_B: &str = "#replicas li[data-name=B]";

/// Two replicas of the test's own, a room, and its page on A, which has heard that both are there.
async fn opened(database: Database) -> (World, Room, Browser) {
    let world = World::own(database).start().await;
    let room = world.room("outage").await.seen_from(B);
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    browser.reads(OF_B, "B alive").await;
    // From here on it listens.
    room.books("Zoe", "E8").on(B).await.is("booked");
    browser.shows("E8", &["Zoe"]).await;
    (world, room, browser)
}

impl Browser {
    /// A booking through A by somebody else is seen, and one of the page's own works.
    async fn goes_on(&self, room: &Room, theirs: &str, own: &str) {
        room.books("Ana", theirs).on(A).await.is("booked");
        let answered = Instant::now();
        self.shows(theirs, &["Ana"]).await;
        promised("a booking through A is seen", SEEN, answered.elapsed());
        self.fills("#buyer", "Maria").await;
        self.clicks(&format!("#seats button[value={own}]")).await;
        self.shows(own, &["Maria"]).await;
        self.reads("#attempt", "Maria").await;
    }

    async fn says_nothing_of_its_link(&self) {
        let hidden = "return document.getElementById('link-state').hidden";
        self.finds("the page says nothing of its link", hidden)
            .await;
    }
}
