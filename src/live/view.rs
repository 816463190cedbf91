//! A room as the stream tells it, and what is told when it changed.
//!
//! Promises: only what changed is told, and whoever has heard all of it knows the room as it is.

use std::collections::HashMap;

use serde::Serialize;

use super::event::Event;
use crate::audit::Audit;
use crate::room::{ShownWallet, Switches};
use crate::wallet::Money;

/// The entries of each list of an audit that are told; the sentence counts all.
const MOST_ACCUSED: usize = 50;

/// The bookings of a seat that was sold twice that are told.
const MOST_SALES: usize = 20;

/// A room of one moment.
#[derive(Debug)]
pub(super) struct View {
    pub(super) layout: Layout,
    pub(super) epoch: i64,
    pub(super) switches: Switches,
    /// Those that are not free, row by row.
    pub(super) seats: Vec<LiveSeat>,
    pub(super) wallets: Vec<LiveWallet>,
    pub(super) audit: Audit,
}

/// What a page cannot change by itself: with another one it is drawn anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) room_id: i64,
    pub(super) extent: (i64, i64),
    pub(super) wallets: Vec<String>,
}

/// A seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LiveSeat {
    pub(super) seat: String,
    pub(super) state: String,
    /// All its bookings in order, or the first of many.
    pub(super) buyers: Vec<String>,
    /// How many bookings there are beyond those.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) more: i64,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl LiveSeat {
    /// The same seat, when nobody has it any more.
    fn freed(&self) -> Self {
        Self {
            seat: self.seat.clone(),
            state: "free".to_owned(),
            buyers: Vec::new(),
            more: 0,
        }
    }
}

/// A wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LiveWallet {
    pub(super) wallet: String,
    pub(super) balance: Money,
    /// What it should hold.
    pub(super) expected: Money,
}

/// The wallets with what they should hold: the audit names those in which that differs.
pub(super) fn with_expected(wallets: Vec<ShownWallet>, audit: &Audit) -> Vec<LiveWallet> {
    let expected: HashMap<&str, Money> = audit
        .wallets
        .iter()
        .map(|off| (off.wallet.as_str(), off.expected))
        .collect();
    wallets
        .into_iter()
        .map(|shown| LiveWallet {
            expected: *expected
                .get(shown.wallet.as_str())
                .unwrap_or(&shown.balance),
            wallet: shown.wallet,
            balance: shown.balance,
        })
        .collect()
}

/// An audit that no load can make long.
pub(super) fn shortened(mut audit: Audit) -> Audit {
    audit.seats_sold_twice.truncate(MOST_ACCUSED);
    for seat in &mut audit.seats_sold_twice {
        seat.bookings.truncate(MOST_SALES);
    }
    audit.wallets.truncate(MOST_ACCUSED);
    audit.negative_wallets.truncate(MOST_ACCUSED);
    audit.token_disorder.truncate(MOST_ACCUSED);
    audit
}

/// What is told about a change, and how the room stands after it.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) events: Vec<Event>,
    pub(super) standing: Vec<Event>,
}

impl News {
    /// What is different between two views.
    pub(super) fn between(before: Option<&View>, after: &View) -> Self {
        let mut news = Self::default();
        if before.is_some_and(|before| before.layout != after.layout) {
            news.events.push(gap());
        }
        if before
            .is_none_or(|before| (before.epoch, &before.switches) != (after.epoch, &after.switches))
        {
            news.whole(switches(after));
        }
        let seats = changed_seats(before.map_or(&[], |before| &before.seats), &after.seats);
        news.part(before.is_none(), "seats", &seats, &after.seats);
        let old = before.map_or(&[][..], |before| &before.wallets);
        let wallets = after.wallets.iter().filter(|wallet| !old.contains(wallet));
        let wallets: Vec<_> = wallets.cloned().collect();
        news.part(before.is_none(), "wallets", &wallets, &after.wallets);
        news
    }

    /// Something that is always told as a whole.
    pub(super) fn whole(&mut self, event: Event) {
        self.standing.push(event.clone());
        self.events.push(event);
    }

    /// Something of which the changed part is told, under its own name.
    fn part<T: Serialize>(&mut self, first: bool, name: &'static str, part: &[T], whole: &[T]) {
        if first || !part.is_empty() {
            self.events
                .push(Event::new(name, &HashMap::from([(name, part)])));
            self.standing
                .push(Event::new(name, &HashMap::from([(name, whole)])));
        }
    }
}

/// Those that are new or different, and those that are free again.
fn changed_seats(before: &[LiveSeat], after: &[LiveSeat]) -> Vec<LiveSeat> {
    let mut old: HashMap<&str, &LiveSeat> = before
        .iter()
        .map(|seat| (seat.seat.as_str(), seat))
        .collect();
    let mut changed: Vec<LiveSeat> = after
        .iter()
        .filter(|&seat| old.remove(seat.seat.as_str()) != Some(seat))
        .cloned()
        .collect();
    let freed = before
        .iter()
        .filter(|seat| old.contains_key(seat.seat.as_str()));
    changed.extend(freed.map(LiveSeat::freed));
    changed
}

fn switches(view: &View) -> Event {
    #[derive(Serialize)]
    struct Told<'a> {
        epoch: i64,
        switches: &'a Switches,
    }
    let told = Told {
        epoch: view.epoch,
        switches: &view.switches,
    };
    Event::new("switches", &told)
}

/// What the reader knows is not to be relied on: it reads the page anew.
pub(super) fn gap() -> Event {
    #[derive(Serialize)]
    struct Nothing {}
    Event::new("gap", &Nothing {})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sold(seat: &str, buyers: &[&str]) -> LiveSeat {
        LiveSeat {
            seat: seat.to_owned(),
            state: "sold".to_owned(),
            buyers: buyers.iter().map(|&buyer| buyer.to_owned()).collect(),
            more: 0,
        }
    }

    #[test]
    fn only_seats_that_changed_are_told() {
        let before = [
            sold("A1", &["Ana"]),
            sold("A2", &["Ana"]),
            sold("A3", &["Ana"]),
        ];
        let after = [
            sold("A1", &["Ana"]),
            sold("A2", &["Ana", "Ben"]),
            sold("B1", &["Cem"]),
        ];
        let expected = [
            sold("A2", &["Ana", "Ben"]),
            sold("B1", &["Cem"]),
            sold("A3", &[]).freed(),
        ];
        assert_eq!(changed_seats(&before, &after), expected);
        assert_eq!(changed_seats(&after, &after), []);
    }

    #[test]
    fn a_seat_lists_its_buyers_and_how_many_more_there_are() {
        let mut seat = sold("A1", &["Ana"]);
        let text = |seat: &LiveSeat| serde_json::to_string(seat).unwrap();
        assert_eq!(
            text(&seat),
            r#"{"seat":"A1","state":"sold","buyers":["Ana"]}"#
        );
        seat.more = 2;
        assert_eq!(
            text(&seat),
            r#"{"seat":"A1","state":"sold","buyers":["Ana"],"more":2}"#
        );
    }
}
