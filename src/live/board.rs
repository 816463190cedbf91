//! The board of a room: its last events, and how the room stands now.
//!
//! Promises: an event is made into text once, however many read it; a reader is nothing but the number of the event it
//! read last, so that a reader that never reads costs nothing here. Does not promise that an event is still there when
//! somebody comes for it: the oldest make room for new ones, and who wants those has lost its place.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::event::{Event, Id};

/// The events that are kept: about ten seconds of all that is told in a busy room, many minutes in a quiet one.
const MOST_EVENTS: usize = 4_000;

/// What the events that are kept may weigh: the reset of a sold-out room of 10,000 seats is half a megabyte.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// The board of one room.
#[derive(Debug)]
pub(super) struct Board {
    stream: u64,
    pinned: Mutex<Pinned>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Pinned {
    events: VecDeque<Pin>,
    bytes: usize,
    /// The number of the newest event.
    last: u64,
    /// How the room stands, as one event for each thing that is shown.
    standing: Vec<(&'static str, Bytes)>,
}

/// An event on the board.
#[derive(Debug)]
struct Pin {
    bytes: usize,
    /// The text of this event and of those that were pinned together with it after it.
    rest: Bytes,
    /// The number of the last of these.
    last: u64,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The events after its place, and its place after them.
    Events(Bytes, u64),
    /// Nothing new.
    Nothing,
    /// What it wants has made room for others.
    Lost,
}

impl Board {
    pub(super) fn new() -> Self {
        Self {
            stream: rand::random(),
            pinned: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }

    /// Pins events, together.
    pub(super) fn pin(&self, events: &[Event]) {
        self.pin_and_stand(events, &[]);
    }

    /// Pins that readers must look at the whole anew, and that nothing stands any more as it was noted.
    pub(super) fn pin_gap(&self, gap: &Event) {
        self.pinned().standing.clear();
        self.pin(std::slice::from_ref(gap));
    }

    /// Pins something that is always told as a whole, and notes it.
    pub(super) fn pin_whole(&self, event: &Event) {
        let whole = std::slice::from_ref(event);
        self.pin_and_stand(whole, whole);
    }

    /// Pins what changed, and notes how the room stands after it.
    pub(super) fn pin_and_stand(&self, events: &[Event], standing: &[Event]) {
        let last = {
            let mut pinned = self.pinned();
            pinned.note(standing);
            pinned.add(self.stream, events);
            pinned.last
        };
        // Outside of the lock: everybody who wakes up wants it.
        self.newest.send_if_modified(|newest| {
            let news = *newest < last;
            *newest = last.max(*newest);
            news
        });
    }

    /// Tells a reader when there is something new.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// How the room stands, and the place from which to read on.
    pub(super) fn start(&self) -> (Vec<Bytes>, u64) {
        let pinned = self.pinned();
        let mut texts: Vec<Bytes> = pinned
            .standing
            .iter()
            .map(|(_, text)| text.clone())
            .collect();
        if !texts.is_empty() {
            texts.push(self.id(pinned.last).alone().into());
        }
        (texts, pinned.last)
    }

    /// The place that an id names, if it is one of this stream from which can be read on.
    pub(super) fn place(&self, id: &str) -> Option<u64> {
        let id: Id = id.parse().ok()?;
        let known = id.stream == self.stream && self.after(id.number) != Found::Lost;
        known.then_some(id.number)
    }

    /// What stands after a place.
    pub(super) fn after(&self, place: u64) -> Found {
        self.pinned().after(place)
    }

    fn id(&self, number: u64) -> Id {
        Id {
            stream: self.stream,
            number,
        }
    }

    fn pinned(&self) -> MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pinned {
    fn note(&mut self, standing: &[Event]) {
        for event in standing {
            let text = Bytes::from(event.without_id());
            match self
                .standing
                .iter_mut()
                .find(|(name, _)| *name == event.name())
            {
                Some((_, noted)) => *noted = text,
                None => self.standing.push((event.name(), text)),
            }
        }
    }

    fn add(&mut self, stream: u64, events: &[Event]) {
        let texts = (self.last + 1..)
            .zip(events)
            .map(|(number, event)| event.at(Id { stream, number }));
        let texts: Vec<String> = texts.collect();
        let mut rest = Bytes::from(texts.concat());
        self.last += events.len() as u64;
        for text in &texts {
            let after = rest.slice(text.len()..);
            self.bytes += text.len();
            self.events.push_back(Pin {
                bytes: text.len(),
                rest: std::mem::replace(&mut rest, after),
                last: self.last,
            });
        }
        self.make_room();
    }

    /// The newest always stays, whatever it weighs.
    fn make_room(&mut self) {
        while self.events.len() > 1 && (self.events.len() > MOST_EVENTS || self.bytes > MOST_BYTES)
        {
            let oldest = self.events.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.bytes);
        }
    }

    fn after(&self, place: u64) -> Found {
        let kept = self.events.len() as u64;
        let Some(new) = self.last.checked_sub(place) else {
            return Found::Lost;
        };
        match usize::try_from(kept.wrapping_sub(new)) {
            _ if new == 0 => Found::Nothing,
            Ok(index) if new <= kept => {
                let pin = &self.events[index];
                Found::Events(pin.rest.clone(), pin.last)
            }
            _ => Found::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(n: u64) -> Event {
        Event::new("step", &json!(n))
    }

    fn text(board: &Board, number: u64) -> String {
        event(number).at(board.id(number))
    }

    #[test]
    fn what_was_noted_of_a_room_that_is_gone_is_told_to_nobody() {
        let board = Board::new();
        board.pin_whole(&event(1));
        assert!(!board.start().0.is_empty());
        board.pin_gap(&Event::new("gap", &json!(null)));
        let (standing, place) = board.start();
        assert_eq!((standing, place), (Vec::new(), 2));
    }

    #[test]
    fn a_reader_gets_all_that_stands_after_its_place_and_moves_on() {
        let board = Board::new();
        assert_eq!(board.after(0), Found::Nothing);
        board.pin(&[event(1), event(2), event(3)]);
        board.pin(&[event(4)]);
        let rest: String = (2..=3).map(|number| text(&board, number)).collect();
        assert_eq!(board.after(1), Found::Events(rest.into(), 3));
        assert_eq!(board.after(3), Found::Events(text(&board, 4).into(), 4));
        assert_eq!(board.after(4), Found::Nothing);
        assert_eq!(board.after(5), Found::Lost);
    }

    #[test]
    fn who_comes_too_late_has_lost_its_place() {
        let board = Board::new();
        for number in 1..=MOST_EVENTS as u64 + 1 {
            board.pin(&[event(number)]);
        }
        assert_eq!(board.after(0), Found::Lost);
        assert_eq!(board.after(1), Found::Events(text(&board, 2).into(), 2));
        assert_eq!(board.place(&board.id(0).to_string()), None);
        assert_eq!(board.place(&board.id(1).to_string()), Some(1));
        assert_eq!(board.place(&Board::new().id(1).to_string()), None);
        assert_eq!(board.place("nonsense"), None);
    }

    #[test]
    fn a_heavy_event_pushes_out_the_old_ones_and_stays_itself() {
        let board = Board::new();
        board.pin(&[event(1)]);
        let heavy = Event::new("seats", &"x".repeat(MOST_BYTES + 1));
        board.pin(&[heavy]);
        assert_eq!(board.after(0), Found::Lost);
        assert!(matches!(board.after(1), Found::Events(_, 2)));
        board.pin(&[event(3)]);
        assert_eq!(board.after(1), Found::Lost);
        assert!(matches!(board.after(2), Found::Events(_, 3)));
    }

    #[test]
    fn a_new_reader_hears_how_the_room_stands_and_then_where_it_is() {
        let board = Board::new();
        assert_eq!(board.start(), (Vec::new(), 0));
        let whole = |n: u64| Event::new("wallets", &json!({"whole": n}));
        board.pin_and_stand(&[event(1)], &[whole(1)]);
        board.pin_and_stand(&[event(2)], &[whole(2)]);
        let id = board.id(2).alone();
        assert_eq!(
            board.start(),
            (vec![whole(2).without_id().into(), id.into()], 2)
        );
    }
}
