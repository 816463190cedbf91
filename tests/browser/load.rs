//! A load run from a page: started, followed, stopped, reported.

use serde_json::json;

use crate::accessible::axe;
use crate::browser::Browser;
use crate::support::{A, Database, World};

on_both_databases!(
    a_run_is_started_followed_and_reported,
    a_run_is_stopped_and_reported_without_script,
);

/// What would be lost if the page were loaded again.
const MARK: &str = "window.notLoadedAgain = true";

async fn a_run_is_started_followed_and_reported(database: Database) {
    let world = World::own(database).start().await;
    let browser = Browser::starts().await;
    let page = format!("{}/load", world.url(A));
    browser.goes_to(&page).await;
    browser.has_no_violation(&axe(), "the form").await;
    choose(&browser, "15").await;
    browser.clicks("form.make button").await;

    browser.reads("#run-title", "A run is under way").await;
    browser.asks(MARK, Vec::new()).await;
    browser.has_no_violation(&axe(), "the run").await;
    browser.reads("tbody", "lock=redis").await;
    let is_driven = "return [...document.querySelectorAll('tbody td:nth-child(3)')]
        .some((done) => Number.parseFloat(done.textContent) > 0)";
    browser.finds("the run is seen to go on", is_driven).await;

    browser.reads("#last-title", "The last run").await;
    browser.reads("#last-headline", "with locking=off").await;
    browser
        .reads("#last-headline", "none seen with lock=redis")
        .await;
    browser.reads("#said", "none seen with lock=redis").await;
    assert_eq!(
        browser
            .asks("return window.notLoadedAgain", Vec::new())
            .await,
        json!(true)
    );
    browser.was_well_behaved().await;

    browser.clicks("a[href='/load/report']").await;
    browser.reads("h1", "none seen with lock=redis").await;
    assert!(browser.count("svg").await > 0);
    assert_eq!(browser.count("script").await, 0);
    browser.was_well_behaved().await;
}

async fn a_run_is_stopped_and_reported_without_script(database: Database) {
    let world = World::own(database).start().await;
    let browser = Browser::starts_without_script().await;
    browser.goes_to(&format!("{}/load", world.url(A))).await;
    choose(&browser, "60").await;
    browser.clicks("form.make button").await;
    browser.reads("#run-title", "A run is under way").await;
    browser.clicks("form[action='/load/stop'] button").await;
    // The page shows itself anew until it has ended.
    browser.reads("#last-title", "The last run").await;
    browser.clicks("a[href='/load/report']").await;
    browser.reads("h1", "lock=redis").await;
    browser.was_well_behaved().await;
}

/// Locking off beside Redis, as the form proposes; a crowd on few seats, with time between read and write.
async fn choose(browser: &Browser, seconds: &str) {
    let chosen =
        "return [...document.querySelectorAll('[name=side]:checked')].map((side) => side.value)";
    assert_eq!(
        browser.asks(chosen, Vec::new()).await,
        json!(["locking=off", "lock=redis"])
    );
    browser.fills("#rate", "40").await;
    browser.fills("#seconds", seconds).await;
    browser.fills("#think", "100").await;
}
