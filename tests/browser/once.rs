//! Reload, back and double click do nothing twice.

use serde_json::json;

use crate::browser::{Browser, address};
use crate::support::{A, Database, World};

on_both_databases!(reload_and_back_do_nothing, a_double_click_counts_once,);

async fn reload_and_back_do_nothing(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("again").await;
    let browser = Browser::starts().await;
    browser.goes_to(&format!("{}/rooms", world.url(A))).await;
    browser.opens(&world, A, &room).await;
    browser.clicks("#seats button[value=A1]").await;
    browser.reads("#attempt", "A1").await;
    browser.clicks("#wallets form button").await;
    browser.reads("#wallets", "90.00").await;

    browser.reloads().await;
    browser.is_live().await;
    browser.reads("#seats h2", "1 of 40 seats sold").await;
    browser.goes_back().await;
    browser.reads("main", "A room of your own").await;
    browser.driver().forward().await.expect("a way forward");
    browser.is_live().await;
    browser.reads("#seats h2", "1 of 40 seats sold").await;
    browser.reads("#wallets", "90.00").await;

    assert_eq!(room.audit().await.attempts, 2);
    assert_eq!(room.balance("alice").await, "90.00");
    let here = browser.driver().current_url().await.expect("an address");
    assert_eq!(here.as_str(), address(&world, A, &room));
    browser.was_well_behaved().await;
}

async fn a_double_click_counts_once(database: Database) {
    let world = World::shared(database).await;
    // The first click is at work when the second comes.
    let switches = json!({"think_ms": 3000, "ttl_ms": 60_000});
    let room = world.room_with("double", switches).await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;

    browser.double_clicks("#wallets form button").await;
    browser.reads("#attempt", "10.00").await;
    let nothing_runs = "return document.querySelector('[aria-busy]') === null";
    browser.finds("all is answered", nothing_runs).await;
    assert_eq!(room.balance("alice").await, "90.00");

    browser.double_clicks("#seats button[value=A1]").await;
    browser.reads("#seats h2", "1 of 40 seats sold").await;
    browser.reads("#attempt", "A1").await;
    browser.finds("all is answered", nothing_runs).await;
    assert_eq!(browser.count("#attempt article").await, 1);
    assert_eq!(room.audit().await.attempts, 2);
    browser.was_well_behaved().await;
}
