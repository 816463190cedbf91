//! What the tab key reaches on every page, and how it is seen.

use serde::Deserialize;
use serde_json::json;
use thirtyfour::Key;

use crate::browser::{Browser, address};
use crate::support::{A, Database, World};

on_both_databases!(every_control_is_reached_in_order_and_is_seen);

/// The parts of a room's page with something to operate, in the order in which they are read; the link past the top has
/// none.
const PARTS: [&str; 11] = [
    "", "top", "toggle", "races", "race", "seats", "wallets", "attempt", "switches", "locks",
    "bottom",
];

/// What is left for a room full of people.
const PROJECTED: [&str; 7] = ["", "top", "toggle", "races", "race", "seats", "attempt"];

/// A page that nobody sees closes its stream.
const STAND_STILL: &str = "
    Object.defineProperty(document, 'visibilityState', { value: 'hidden' });
    document.dispatchEvent(new Event('visibilitychange'));";

/// More than the page has.
const MOST_STOPS: usize = 400;

async fn every_control_is_reached_in_order_and_is_seen(database: Database) {
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "think_ms": 1000});
    let room = world.room_with("walk", switches).await;
    let browser = Browser::starts().await;
    room.race("one-seat").await;
    let attempt = room.books("Mia", "A2").await.json()["attempt"].clone();
    let page = address(&world, A, &room);
    let attempt = format!("attempt={}", attempt.as_str().expect("an attempt"));
    for (view, parts) in [("", &PARTS[..]), ("&view=projector", &PROJECTED[..])] {
        browser.goes_to(&format!("{page}?{attempt}{view}")).await;
        browser.is_live().await;
        browser.has_drawn_the_race().await;
        // What a replica that is slow changes on the page would come between two steps.
        browser.asks(STAND_STILL, Vec::new()).await;
        let stops = browser.walks_through(&page).await;
        println!("{} stops on the page of a room{view}", stops.len());
        let mut walked: Vec<&str> = stops.iter().map(|stop| stop.part.as_str()).collect();
        walked.dedup();
        assert_eq!(walked, parts);
    }
    for path in ["/rooms", "/api", "/rooms/that-nobody-made"] {
        let page = format!("{}{path}", world.url(A));
        browser.goes_to(&page).await;
        browser.walks_through(&page).await;
    }
    browser
        .was_well_behaved_but(&["/that-nobody-made - Failed to load resource"])
        .await;
}

/// A place where the tab key stops.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Stop {
    /// Its number among all elements of the page.
    number: usize,
    part: String,
    /// As a person would call it.
    name: String,
    /// A ring is drawn around it, of this many pixels.
    ring: f64,
    /// It is within the window, and nothing lies on it.
    in_sight: bool,
}

/// Tells of an element what [`Stop`] holds.
const STOP: &str = "
    const all = [...document.querySelectorAll('*')];
    const nameOf = (element) => element.getAttribute('aria-label')
        ?? element.labels?.[0]?.textContent.trim() ?? element.textContent.trim().slice(0, 60);
    const partOf = (element) => {
        const part = element.closest('main > section, .goods > section, .side > section, .first > section, .top, .bottom');
        return part ? part.id || part.className : '';
    };
    const inSight = (element) => {
        const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
        const [x, y] = [
            (Math.max(0, left) + Math.min(innerWidth, right)) / 2,
            (Math.max(0, top) + Math.min(innerHeight, bottom)) / 2,
        ];
        const there = document.elementFromPoint(x, y);
        return width > 1 && height > 1 && there !== null
            && (element.contains(there) || there.contains(element) || there.closest('label')?.control === element);
    };
    const stop = (element) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return {
            number: all.indexOf(element),
            part: partOf(element),
            name: nameOf(element),
            ring: outlineStyle === 'none' ? 0 : parseFloat(outlineWidth),
            in_sight: inSight(element),
        };
    };";

/// All that can be operated: of radio buttons the chosen one, since the arrow keys go on from there.
const CONTROLS: &str = "
    return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
        .filter((element) => element.tabIndex >= 0 && !element.disabled && element.checkVisibility({ visibilityProperty: true }))
        .filter((element) => element.type !== 'radio' || element.checked)
        .map(stop);";

impl Browser {
    /// Walks forth and back through all that can be operated on a page that was just opened: nothing is left out,
    /// nothing comes twice, nothing holds the focus, and where it is can be seen.
    async fn walks_through(&self, page: &str) -> Vec<Stop> {
        let controls = self.asks(&format!("{STOP} {CONTROLS}"), Vec::new()).await;
        let controls: Vec<Stop> = serde_json::from_value(controls).expect("stops");
        let forth = self.stops_of(async || self.presses(Key::Tab).await).await;
        assert_eq!(names(&forth), names(&controls), "{page}");
        let mut back = self.stops_of(async || self.goes_back_a_stop().await).await;
        back.reverse();
        assert_eq!(names(&back), names(&controls), "{page}, backwards");
        for stop in forth.iter().chain(&back) {
            assert!(stop.ring >= 2.0, "{page}: a ring around {stop:?}");
            assert!(stop.in_sight, "{page}: {stop:?}");
        }
        forth
    }

    /// Where each step leads, until the page is left or it begins anew.
    async fn stops_of(&self, step: impl AsyncFn()) -> Vec<Stop> {
        let here = format!(
            "{STOP} const element = document.activeElement;
             return element === document.body ? null : stop(element)"
        );
        let mut stops: Vec<Stop> = Vec::new();
        loop {
            step().await;
            let stop = self.asks(&here, Vec::new()).await;
            let stop: Option<Stop> = serde_json::from_value(stop).expect("a stop, or none");
            match stop {
                Some(stop)
                    if stops
                        .first()
                        .is_none_or(|first| first.number != stop.number) =>
                {
                    stops.push(stop);
                }
                _ => return stops,
            }
            assert!(stops.len() < MOST_STOPS, "no way out: {:?}", names(&stops));
        }
    }

    async fn goes_back_a_stop(&self) {
        let back = self.driver().action_chain().key_down(Key::Shift);
        let back = back.send_keys(Key::Tab).key_up(Key::Shift);
        back.perform().await.expect("keys");
    }
}

fn names(stops: &[Stop]) -> Vec<String> {
    let name = |stop: &Stop| format!("{} {}: {}", stop.number, stop.part, stop.name);
    stops.iter().map(name).collect()
}
