//! Names that try to be more than text.

use serde_json::json;

use crate::browser::Browser;
use crate::support::{A, B, Database, World};

on_both_databases!(
    names_are_text_wherever_they_come_from,
    wallets_that_differ_in_blanks_are_two,
);

const NAMES: [&str; 8] = [
    "<img src=x onerror=\"window.hurt=1\">",
    "</bdi></td></table><script>window.hurt=1</script>",
    "\" autofocus onfocus=\"window.hurt=1",
    "&lt;b&gt; &amp;amp;",
    "\u{202e}desrever \u{202d}Ana",
    "مريم",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "Z\u{351}\u{36b}\u{343}a\u{334}l\u{337}g\u{308}o\u{489}",
];

async fn wallets_that_differ_in_blanks_are_two(database: Database) {
    let world = World::shared(database).await;
    let wallets = ["a b", "a  b"].map(|name| json!({"name": name, "balance": "50.00"}));
    let room = world.room_of("blanks", json!({"wallets": wallets})).await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    browser.clicks("#wallets form button").await;
    browser.reads("#attempt", "10.00").await;
    assert_eq!(room.balance("a b").await, "40.00");
    assert_eq!(room.balance("a  b").await, "60.00");
    browser.was_well_behaved().await;
}

async fn names_are_text_wherever_they_come_from(database: Database) {
    let world = World::shared(database).await;
    let wallets: Vec<_> = NAMES
        .iter()
        .map(|name| json!({"name": name, "balance": "10.00"}))
        .collect();
    let room = world.room_of("names", json!({"wallets": wallets})).await;
    room.switches(json!({"locking": false})).await;

    // As the server draws them.
    for (name, column) in NAMES.iter().zip(1..) {
        room.books(name, &format!("A{column}"))
            .on(B)
            .await
            .is("booked");
    }
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    for (name, column) in NAMES.iter().zip(1..) {
        browser.shows(&format!("A{column}"), &[name]).await;
    }

    // As a live update brings them.
    for (name, column) in NAMES.iter().zip(1..) {
        room.books(name, &format!("B{column}"))
            .on(B)
            .await
            .is("booked");
        browser.shows(&format!("B{column}"), &[name]).await;
    }

    // Sold twice, so that the audit names them, too.
    let mut both = [NAMES[0], NAMES[4]];
    let [one, other] = both.map(|name| {
        let books = room.books(name, "C1").pausing_at("after_read").at_gate("g");
        if name == NAMES[0] {
            books.on(A)
        } else {
            books.on(B)
        }
        .starts()
    });
    room.both_wait_at_gate("g", "after_read").await;
    room.opens("g").await;
    one.answer().await.is("booked");
    other.answer().await.is("booked");
    both.sort_unstable();
    browser.shows("C1", &both).await;
    for name in both {
        browser.has_as_text("#audit", name).await;
    }

    // Typed into the page itself.
    for (name, column) in NAMES.iter().zip(1..) {
        let types = "document.getElementById('buyer').value = arguments[0]";
        browser.asks(types, vec![json!(name)]).await;
        browser
            .clicks(&format!("#seats button[value=D{column}]"))
            .await;
        browser.shows(&format!("D{column}"), &[name]).await;
        browser.has_as_text("#attempt", name).await;
        browser.has_as_text("#wallets", name).await;
    }
    browser.clicks("details.as-list summary").await;
    for name in NAMES {
        browser.has_as_text("details.as-list", name).await;
    }
    assert_eq!(browser.count("main img, main script, main b b").await, 0);
    let unhurt = browser.asks("return window.hurt === undefined", Vec::new());
    assert_eq!(unhurt.await, true);
    browser.was_well_behaved().await;
}

impl Browser {
    /// Waits until a name stands in this part of the page, letter for letter, fenced in.
    async fn has_as_text(&self, css: &str, name: &str) {
        let script = format!(
            "return [...document.querySelectorAll('{css} bdi')].some((bdi) => bdi.textContent.includes({}))",
            json!(name)
        );
        self.finds(&format!("{css} names {name:?}"), &script).await;
    }
}
