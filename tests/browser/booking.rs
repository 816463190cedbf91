//! Seats by mouse, and by keyboard alone.

use thirtyfour::Key;

use crate::browser::Browser;
use crate::support::{A, Database, World};

on_both_databases!(
    a_click_books_a_seat_for_the_name_above,
    a_keyboard_is_enough,
);

async fn a_click_books_a_seat_for_the_name_above(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("mouse").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    browser.fills("#buyer", "Maria").await;
    browser.clicks("#seats button[value=A2]").await;
    browser.shows("A2", &["Maria"]).await;
    browser.reads("#attempt", "Maria").await;
    browser.shows("A1", &[]).await;
    assert_eq!(room.audit().await.attempts, 1);
    browser.was_well_behaved().await;
}

async fn a_keyboard_is_enough(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("keyboard").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;

    browser.walks_to("#toggle .flip").await;
    browser.presses(" ").await;
    browser.reads("#toggle", "Locking is off").await;

    browser.walks_to("#buyer").await;
    browser.types_anew("Kim").await;
    browser.walks_to("#seats [role=grid] td *").await;
    assert!(browser.has_focus("button[value=A1]").await);
    for key in [Key::Right, Key::Right, Key::Down] {
        browser.presses(key).await;
    }
    assert!(browser.has_focus("button[value=B3]").await);
    browser.presses(Key::Enter).await;
    browser.shows("B3", &["Kim"]).await;

    // The focus stays where it was, so the walk goes on from there.
    assert!(browser.has_focus("#seats td.sold").await);
    browser.presses(Key::Right).await;
    assert!(browser.has_focus("button[value=B4]").await);
    browser.presses(Key::Enter).await;
    browser.shows("B4", &["Kim"]).await;
    assert_eq!(room.audit().await.attempts, 2);
    browser.was_well_behaved().await;
}
