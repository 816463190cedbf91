//! A room that is laid out anew while its page is open is another page.

use reqwest::Method;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::support::{A, B, Database, Room, World};

on_both_databases!(
    as_many_seats_in_other_rows_are_shown,
    other_wallets_are_shown,
    a_room_that_is_deleted_while_its_page_is_hidden_is_said_to_be_gone,
);

async fn as_many_seats_in_other_rows_are_shown(database: Database) {
    let (room, browser) = opened(database, json!({"rows": 2, "columns": 3})).await;
    room.is_made(json!({"rows": 3, "columns": 2})).await;
    browser.element("#seats button[value=C2]").await;
    assert_eq!(browser.count("#seats button[value=A3]").await, 0);
    browser.was_well_behaved().await;
}

async fn other_wallets_are_shown(database: Database) {
    let (room, browser) = opened(database, json!({})).await;
    let wallets = ["erin", "frank"].map(|name| json!({"name": name, "balance": "7.00"}));
    room.is_made(json!({"wallets": wallets})).await;
    browser.reads("#wallets .balances", "frank").await;
    assert!(!browser.text("#wallets .balances").await.contains("alice"));
    browser.was_well_behaved().await;
}

async fn a_room_that_is_deleted_while_its_page_is_hidden_is_said_to_be_gone(database: Database) {
    let (room, browser) = opened(database, json!({})).await;
    let page = browser.window().await;
    browser.opens_tab().await;
    let gone = room.asks(Method::DELETE, "", None).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    browser.turns_to(&page).await;
    browser.reads("body", "there is no room").await;
    browser.was_well_behaved_but(&["404"]).await;
}

/// A room of this shape as it is seen from B, and its page on A, which listens.
async fn opened(database: Database, shape: Value) -> (Room, Browser) {
    let world = World::shared(database).await;
    let room = world.room_of("anew", shape).await.seen_from(B);
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    room.books("Zoe", "A1").on(B).await.is("booked");
    browser.shows("A1", &["Zoe"]).await;
    (room, browser)
}
