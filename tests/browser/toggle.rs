//! The largest control.

use serde_json::json;

use crate::browser::Browser;
use crate::support::{A, B, Database, PATIENCE, Room, World, eventually};

on_both_databases!(a_click_switches_locking_for_the_whole_room);

async fn a_click_switches_locking_for_the_whole_room(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("toggle").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    browser.reads("#toggle", "Locking is on").await;
    let off = ("Locking is off", "now nothing keeps the buyers apart");
    let on = ("Locking is on", "Then switch locking off");
    for (locking, (says, hint)) in [(false, off), (true, on)] {
        browser.clicks("#toggle .flip").await;
        browser.reads("#toggle", says).await;
        browser.reads("#audit", hint).await;
        let flip = browser.element("#toggle .flip").await;
        let checked = flip.attr("aria-checked").await.expect("a switch");
        assert_eq!(checked, Some(locking.to_string()));
        // The other replica obeys it as well.
        has_locking(&room.seen_from(B), locking).await;
    }
    browser.was_well_behaved().await;
}

async fn has_locking(room: &Room, locking: bool) {
    eventually("the toggle of the room", PATIENCE, async || {
        let switches = room.looks().await["switches"].clone();
        if switches["locking"] == json!(locking) {
            Ok(())
        } else {
            Err(switches.to_string())
        }
    })
    .await;
}
