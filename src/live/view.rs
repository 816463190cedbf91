//! A room as the stream tells it, and what is told when it changed.
//!
//! Promises: only what changed is told, and whoever has heard all of it knows the room as it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    pub(super) seats: Seats,
    pub(super) wallets: Vec<LiveWallet>,
    pub(super) audit: LiveAudit,
}

/// An audit that no load can make long: its lists are cut off.
#[derive(Debug, Serialize)]
pub(super) struct LiveAudit {
    #[serde(flatten)]
    pub(super) audit: Audit,
    more: More,
}

/// How many more there are of what was cut off.
#[derive(Debug, Serialize)]
struct More {
    seats_sold_twice: usize,
    /// By the seat, of those that are told and were sold more often than is told.
    bookings: BTreeMap<String, usize>,
    wallets: usize,
    negative_wallets: usize,
    token_disorder: usize,
}

/// What a page cannot change by itself: with another one it is drawn anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) room_id: i64,
    pub(super) extent: (i64, i64),
    pub(super) wallets: Vec<String>,
}

/// Seats that are not free.
#[derive(Debug, Clone, Default)]
pub(super) struct Seats {
    /// By their names.
    sold: BTreeMap<String, Arc<LiveSeat>>,
    /// The highest number of a booking among theirs.
    pub(super) last_booking: i64,
}

impl Seats {
    /// Adds the next buyer of a seat, of which there are so many `more` than are told.
    pub(super) fn sell(&mut self, seat: String, buyer: String, more: i64) {
        let sold = self.sold.entry(seat).or_insert_with_key(|seat| {
            Arc::new(LiveSeat {
                seat: seat.clone(),
                state: "sold",
                buyers: Vec::new(),
                more,
            })
        });
        Arc::make_mut(sold).buyers.push(buyer);
    }

    /// How many bookings they have.
    pub(super) fn bookings(&self) -> i64 {
        let bookings = self.sold.values().map(|seat| seat.bookings());
        bookings.sum()
    }

    /// These and those that were booked after them.
    pub(super) fn and(&self, later: Self) -> Self {
        let mut both = self.clone();
        both.sold.extend(later.sold);
        both.last_booking = later.last_booking.max(self.last_booking);
        both
    }

    fn list(&self) -> Vec<Arc<LiveSeat>> {
        self.sold.values().cloned().collect()
    }
}

/// A seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LiveSeat {
    seat: String,
    state: &'static str,
    /// All its bookings in order, or the first of many.
    buyers: Vec<String>,
    /// How many bookings there are beyond those.
    #[serde(skip_serializing_if = "is_zero")]
    more: i64,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl LiveSeat {
    fn bookings(&self) -> i64 {
        self.buyers.len() as i64 + self.more
    }

    /// The same seat, when nobody has it any more.
    fn freed(&self) -> Self {
        Self {
            seat: self.seat.clone(),
            state: "free",
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

impl LiveAudit {
    pub(super) fn of(mut audit: Audit) -> Self {
        let more = More {
            seats_sold_twice: cut(&mut audit.seats_sold_twice, MOST_ACCUSED),
            bookings: audit
                .seats_sold_twice
                .iter_mut()
                .map(|seat| (seat.seat.clone(), cut(&mut seat.bookings, MOST_SALES)))
                .filter(|(_, more)| *more > 0)
                .collect(),
            wallets: cut(&mut audit.wallets, MOST_ACCUSED),
            negative_wallets: cut(&mut audit.negative_wallets, MOST_ACCUSED),
            token_disorder: cut(&mut audit.token_disorder, MOST_ACCUSED),
        };
        Self { audit, more }
    }
}

/// Cuts a list off, and says how many entries that were.
fn cut<T>(list: &mut Vec<T>, most: usize) -> usize {
    let more = list.len().saturating_sub(most);
    list.truncate(most);
    more
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
        let none = Seats::default();
        let seats = changed_seats(before.map_or(&none, |before| &before.seats), &after.seats);
        let whole = after.seats.list();
        news.part(before.is_none(), "seats", &seats, &whole);
        let old = before.map_or(&[][..], |before| &before.wallets);
        let wallets = after.wallets.iter().filter(|wallet| !old.contains(wallet));
        let wallets: Vec<_> = wallets.cloned().collect();
        news.part(before.is_none(), "wallets", &wallets, &after.wallets);
        // Last: whoever has heard the epoch of a reset has heard which seats it freed.
        if before
            .is_none_or(|before| (before.epoch, &before.switches) != (after.epoch, &after.switches))
        {
            news.whole(switches(after));
        }
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
fn changed_seats(before: &Seats, after: &Seats) -> Vec<Arc<LiveSeat>> {
    let (before, after) = (&before.sold, &after.sold);
    let sold = after
        .iter()
        .filter(|&(name, seat)| before.get(name) != Some(seat))
        .map(|(_, seat)| Arc::clone(seat));
    let freed = before
        .iter()
        .filter(|&(name, _)| !after.contains_key(name))
        .map(|(_, seat)| Arc::new(seat.freed()));
    sold.chain(freed).collect()
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
    use crate::audit::{MoneySum, Sale, SoldTwice};
    use crate::lock::LockName;

    fn seats(sales: &[(&str, &str)]) -> Seats {
        let mut seats = Seats::default();
        for (seat, buyer) in sales {
            seats.sell((*seat).to_owned(), (*buyer).to_owned(), 0);
        }
        seats
    }

    fn texts(seats: &[Arc<LiveSeat>]) -> Vec<String> {
        let text = |seat: &Arc<LiveSeat>| format!("{} {} {:?}", seat.seat, seat.state, seat.buyers);
        seats.iter().map(text).collect()
    }

    #[test]
    fn only_seats_that_changed_are_told() {
        let before = seats(&[("A1", "Ana"), ("A2", "Ana"), ("A3", "Ana")]);
        let after = seats(&[("A1", "Ana"), ("A2", "Ana"), ("A2", "Ben"), ("B1", "Cem")]);
        assert_eq!(
            texts(&changed_seats(&before, &after)),
            [
                r#"A2 sold ["Ana", "Ben"]"#,
                r#"B1 sold ["Cem"]"#,
                "A3 free []"
            ]
        );
        assert!(changed_seats(&after, &after).is_empty());
    }

    fn view(epoch: i64, seats: Seats) -> View {
        View {
            layout: Layout {
                room_id: 1,
                extent: (1, 4),
                wallets: Vec::new(),
            },
            epoch,
            switches: Switches::on(LockName::Redis),
            seats,
            wallets: Vec::new(),
            audit: LiveAudit::of(audit()),
        }
    }

    #[test]
    fn a_long_audit_is_cut_off_and_says_how_much_more_there_is() {
        let sale = |number: usize| Sale {
            buyer: format!("buyer {number}"),
            replica: "A".to_owned(),
            token: None,
        };
        let sold = |times: usize| SoldTwice {
            seat: format!("A{times}"),
            bookings: (0..times).map(sale).collect(),
        };
        let told = LiveAudit::of(Audit {
            seats_sold_twice: (2..=60).map(sold).collect(),
            ..audit()
        });
        let told = serde_json::to_value(&told).unwrap();
        assert_eq!(told["seats_sold_twice"].as_array().unwrap().len(), 50);
        let last = &told["seats_sold_twice"][49];
        assert_eq!(last["seat"], "A51");
        assert_eq!(last["bookings"].as_array().unwrap().len(), 20);
        assert_eq!(told["more"]["seats_sold_twice"], 9);
        assert_eq!(told["more"]["bookings"]["A51"], 31);
        assert_eq!(told["more"]["bookings"]["A21"], 1);
        assert!(told["more"]["bookings"]["A20"].is_null());
        assert_eq!(told["more"]["wallets"], 0);
    }

    fn audit() -> Audit {
        Audit {
            clean: true,
            sentence: String::new(),
            attempts: 0,
            seats_sold_twice: Vec::new(),
            money: MoneySum {
                opened: Money::ZERO,
                now: Money::ZERO,
                difference: Money::ZERO,
            },
            wallets: Vec::new(),
            negative_wallets: Vec::new(),
            token_disorder: Vec::new(),
            leases_left: None,
        }
    }

    #[test]
    fn a_new_epoch_is_told_after_the_seats_that_its_reset_freed() {
        let before = view(1, seats(&[("A1", "Ana")]));
        let after = view(2, Seats::default());
        let news = News::between(Some(&before), &after);
        let told: Vec<_> = news.events.iter().map(Event::name).collect();
        assert_eq!(told, ["seats", "switches"]);
    }

    #[test]
    fn seats_that_were_booked_later_take_the_place_of_what_was_known_of_them() {
        let before = seats(&[("A1", "Ana"), ("A2", "Ana")]);
        let later = seats(&[("A2", "Ana"), ("A2", "Ben"), ("A3", "Cem")]);
        assert_eq!((before.bookings(), later.bookings()), (2, 3));
        let both = before.and(later);
        assert_eq!(both.bookings(), 4);
        assert_eq!(
            texts(&both.list()),
            [
                r#"A1 sold ["Ana"]"#,
                r#"A2 sold ["Ana", "Ben"]"#,
                r#"A3 sold ["Cem"]"#
            ]
        );
    }

    #[test]
    fn a_seat_lists_its_buyers_and_how_many_more_there_are() {
        let text = |more| {
            let mut seats = Seats::default();
            seats.sell("A1".to_owned(), "Ana".to_owned(), more);
            serde_json::to_string(&seats.list()[0]).unwrap()
        };
        assert_eq!(text(0), r#"{"seat":"A1","state":"sold","buyers":["Ana"]}"#);
        assert_eq!(
            text(2),
            r#"{"seat":"A1","state":"sold","buyers":["Ana"],"more":2}"#
        );
    }
}
