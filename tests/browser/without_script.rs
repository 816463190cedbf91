//! Everything but liveness, with script switched off in the browser.

use serde_json::json;

use crate::browser::{Browser, address};
use crate::support::{A, Database, PATIENCE, World, eventually};

on_both_databases!(
    all_forms_work_without_script,
    switches_that_others_set_meanwhile_stay,
    another_race_than_the_one_under_way_is_refused,
);

async fn all_forms_work_without_script(database: Database) {
    let world = World::shared(database).await;
    let room = world
        .room_with("plain", json!({"think_ms": 500, "ttl_ms": 60_000}))
        .await;
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

    room.switches(json!({"think_ms": 3000})).await;
    browser.clicks("#races button[value=one-seat]").await;
    browser.reads("#race h2", "The last race").await;
    browser.shows("A1", &["Ana", "Ben"]).await;
    browser.reads("#audit.wrong", "A1 was sold").await;
    assert_eq!(browser.count("#race table tbody tr th").await, 2);

    browser
        .clicks("#switches [name=compare][value=true] + span")
        .await;
    browser.clicks("#switches form > button").await;
    browser.has_set(&room, "compare", &json!(true)).await;

    browser.clicks("#reset button").await;
    browser.reads("#seats h2", "0 of 40 seats sold").await;
    browser.reads("#audit.clean", "✓").await;
    browser.was_well_behaved().await;
}

async fn switches_that_others_set_meanwhile_stay(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("meanwhile").await;
    let browser = Browser::starts_without_script().await;
    browser.goes_to(&address(&world, A, &room)).await;
    room.switches(json!({"think_ms": 77, "fencing": "off"}))
        .await;
    browser
        .clicks("#switches [name=compare][value=true] + span")
        .await;
    browser.fills("#switches [name=ttl_ms]", "1500").await;
    browser.clicks("#switches form > button").await;
    eventually("the form was taken", PATIENCE, async || {
        let switches = room.looks().await["switches"].clone();
        let set = ["think_ms", "fencing", "compare", "ttl_ms"].map(|name| switches[name].clone());
        match set == [json!(77), json!("off"), json!(true), json!(1500)] {
            true => Ok(()),
            false => Err(format!("{set:?}")),
        }
    })
    .await;
    browser.was_well_behaved().await;
}

async fn another_race_than_the_one_under_way_is_refused(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"ttl_ms": 10_000, "wait_ms": 40_000});
    let room = world.room_with("under-way", switches).await;
    let browser = Browser::starts_without_script().await;
    browser.goes_to(&address(&world, A, &room)).await;
    let theirs = room.clone();
    let race = tokio::spawn(async move { theirs.race("paused-holder").await });
    eventually("a race under way", PATIENCE, async || {
        let under_way = world.get(A, &format!("/peer/races/{}", room.name)).await;
        match under_way.json().as_bool() {
            Some(true) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    browser.clicks("#races button[value=one-seat]").await;
    browser.reads("h1", "A race is under way").await;
    race.await.expect("it ends");
    browser.clicks(".ways a").await;
    browser.reads("#race h2", "The paused holder").await;
    browser
        .was_well_behaved_but(&["/races - Failed to load resource"])
        .await;
}
