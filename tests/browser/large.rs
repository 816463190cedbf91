//! A room of ten thousand seats.

use std::time::{Duration, Instant};

use serde_json::json;
use thirtyfour::Key;

use crate::browser::Browser;
use crate::support::{A, B, Database, Room, World, promised};

on_both_databases!(
    a_booking_among_ten_thousand_seats_is_seen_soon,
    the_seat_with_the_focus_is_in_sight,
    a_seat_that_was_sold_very_often_is_told_as_often,
);

const SEEN: Duration = Duration::from_secs(1);

async fn opened(database: Database) -> (World, Room, Browser) {
    let world = World::shared(database).await;
    let shape = json!({"rows": 100, "columns": 100});
    let room = world.room_of("large", shape).await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    (world, room, browser)
}

async fn a_booking_among_ten_thousand_seats_is_seen_soon(database: Database) {
    let (_world, room, browser) = opened(database).await;
    // From here on it listens.
    room.books("Zoe", "A1").on(B).await.is("booked");
    browser.shows("A1", &["Zoe"]).await;
    for seat in ["Z50", "CV100"] {
        room.books("Ana", seat).on(B).await.is("booked");
        let answered = Instant::now();
        browser.shows(seat, &["Ana"]).await;
        promised("a booking is seen", SEEN, answered.elapsed());
    }
    browser.fills("#buyer", "Maria").await;
    let clicked = Instant::now();
    browser.clicks("#seats button[value=AX40]").await;
    browser.shows("AX40", &["Maria"]).await;
    promised("a booking of one's own is seen", SEEN, clicked.elapsed());
    browser.reads("#seats h2", "4 of 10000 seats sold").await;
    browser.was_well_behaved().await;
}

/// The heads of rows and columns stay where they are while the map scrolls under them.
async fn the_seat_with_the_focus_is_in_sight(database: Database) {
    let (_world, _room, browser) = opened(database).await;
    browser.walks_to("#seats [role=grid] td *").await;
    for (key, times, seat) in [
        (Key::End, 1, "A100"),
        (Key::PageDown, 3, "AE100"),
        (Key::Left, 25, "AE75"),
        (Key::Up, 15, "P75"),
        (Key::Right, 25, "P100"),
        (Key::Down, 15, "AE100"),
        (Key::Home, 1, "AE1"),
        (Key::PageUp, 2, "K1"),
    ] {
        for _ in 0..times {
            browser.presses(key.clone()).await;
            let in_sight = "const seat = document.activeElement;
                const { left, right, top, bottom } = seat.getBoundingClientRect();
                const middle = (left + right) / 2;
                return [top + 2, bottom - 2].every((y) => document.elementFromPoint(middle, y) === seat)
                    && [left + 2, right - 2].every((x) => document.elementFromPoint(x, (top + bottom) / 2) === seat)
                    || seat.value";
            browser.finds("the seat is in sight", in_sight).await;
        }
        assert!(browser.has_focus(&format!("button[value={seat}]")).await);
    }
    browser.was_well_behaved().await;
}

/// More often than the stream names buyers.
async fn a_seat_that_was_sold_very_often_is_told_as_often(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("often").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &room).await;
    let name = &room.name;
    let id = match database {
        Database::Postgres => "gen_random_uuid()",
        Database::Sqlite => "lower(hex(randomblob(16)))",
    };
    let sold = format!(
        "INSERT INTO booking (booking_id, room_id, attempt, replica, epoch, seat, buyer, version_read, version_written)
         WITH RECURSIVE buyer (number) AS (
             SELECT 1
             UNION ALL
             SELECT number + 1 FROM buyer WHERE number < 37
         )
         SELECT {id}, room_id, {id}, 'A', epoch, 'A1', 'Ana', 0, 1
         FROM room, buyer
         WHERE name = '{name}'"
    );
    assert_eq!(world.changes(&sold).await, 37);
    let written = format!(
        "UPDATE seat
         SET state = 'sold', buyer = 'Ana', version = version + 1
         WHERE name = 'A1'
           AND room_id = (SELECT room_id FROM room WHERE name = '{name}')"
    );
    assert_eq!(world.changes(&written).await, 1);
    browser.reads("#audit", "A1 was sold 37 times").await;
    browser.reads("#audit", "and 17 more.").await;
    browser.was_well_behaved().await;
}
