//! Everything but liveness, with script switched off in the browser.

use serde_json::json;

use crate::browser::{Browser, address};
use crate::support::{A, Database, World};

on_both_databases!(all_forms_work_without_script);

async fn all_forms_work_without_script(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("plain", json!({"think_ms": 500})).await;
    let browser = Browser::starts_without_script().await;
    browser.goes_to(&address(&world, A, &room)).await;
    // Else this would be the page with script.
    assert_eq!(browser.count("[role=grid]").await, 0);
    assert_eq!(browser.count("body.at-once").await, 0);

    browser.clicks("#toggle .flip").await;
    browser.reads("#toggle", "Locking is off").await;
    assert_eq!(room.looks().await["switches"]["locking"], false);

    browser.fills("#buyer", "Maria").await;
    browser.clicks("#seats button[value=A2]").await;
    browser.shows("A2", &["Maria"]).await;
    browser.reads("#attempt", "Maria").await;

    browser.clicks("#wallets form button").await;
    browser.reads("#wallets", "90.00").await;
    browser.reloads().await;
    browser.goes_back().await;
    browser.goes_to(&address(&world, A, &room)).await;
    browser.reads("#wallets", "90.00").await;
    assert_eq!(room.audit().await.attempts, 2, "nothing was done twice");

    browser.clicks("#races button[value=one-seat]").await;
    browser.reads("#race h2", "The last race").await;
    browser.shows("A1", &["Ana", "Ben"]).await;
    browser.reads("#audit.wrong", "A1 was sold").await;
    assert_eq!(browser.count("#race table tbody tr th").await, 2);

    browser
        .clicks("#switches [name=compare][value=true] + span")
        .await;
    browser.clicks("#switches form > button").await;
    browser
        .finds(
            "the switch is set",
            "return document.querySelector('#switches [name=compare][value=true]').checked",
        )
        .await;
    assert_eq!(room.looks().await["switches"]["compare"], true);

    browser.clicks("#reset button").await;
    browser.reads("#seats h2", "0 of 40 seats sold").await;
    browser.reads("#audit.clean", "✓").await;
    browser.was_well_behaved().await;
}
