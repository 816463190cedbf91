//! No script error, no other host, whatever is done.

use serde_json::json;

use crate::browser::Browser;
use crate::support::{A, Database, World};

on_both_databases!(
    no_script_fails_and_no_other_host_is_asked,
    what_is_refused_is_said_and_breaks_nothing,
);

async fn no_script_fails_and_no_other_host_is_asked(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("manners", json!({"think_ms": 50})).await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    browser.clicks("#toggle .flip").await;
    browser.reads("#toggle", "Locking is off").await;
    browser.clicks("#seats button[value=B2]").await;
    browser.reads("#attempt", "B2").await;
    browser.clicks("details.as-list summary").await;
    browser.reads("details.as-list", "B2").await;
    browser.clicks("#wallets form button").await;
    browser.reads("#wallets", "90.00").await;
    browser.races("one-seat").await;
    for tool in ["Zoom in", "Fit the whole race in"] {
        browser
            .clicks(&format!("#diagram button[aria-label='{tool}']"))
            .await;
    }
    browser
        .clicks("#switches [name=compare][value=true] + span")
        .await;
    browser.reads("#toggle .chips", "ompare").await;
    browser.clicks("#reset button").await;
    browser.reads("#seats h2", "0 of 40 seats sold").await;
    browser.was_well_behaved().await;

    for path in ["/", "/rooms", "/api"] {
        browser.goes_to(&format!("{}{path}", world.url(A))).await;
        browser.was_well_behaved().await;
    }
}

async fn what_is_refused_is_said_and_breaks_nothing(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("refused").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    // `paused-holder` needs a longer wait than this.
    room.switches(json!({"ttl_ms": 60_000, "wait_ms": 30_000}))
        .await;
    browser.clicks("#races button[value=paused-holder]").await;
    browser.reads("#problem", "That did not work").await;
    browser.clicks("#seats button[value=A1]").await;
    browser.reads("#seats h2", "1 of 40 seats sold").await;
    let refused = "/races - Failed to load resource: the server responded with a status of 409";
    browser.was_well_behaved_but(&[refused]).await;
}
