//! Recorded histories with known verdicts, and what the check says when anything of a clean one is dropped, told twice
//! or altered.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use uuid::Uuid;

use super::{Check, Outcome, check};
use crate::load::history::{Event, History, Transfer, What, Wish};

/// Two replicas, one lock: 103 attempts that met each other.
const CLEAN: &str = include_str!("../../../tests/load/histories/clean.jsonl");
/// The same with a target where nobody listens, and less patience than an answer takes.
const UNKNOWN: &str = include_str!("../../../tests/load/histories/unknown.jsonl");
/// The same without locks.
const LOCKING_OFF: &str = include_str!("../../../tests/load/histories/locking_off.jsonl");
/// Each buyer wanted a seat of their own.
const COLD: &str = include_str!("../../../tests/load/histories/cold.jsonl");

fn recorded(text: &str) -> History {
    let mut histories = History::read(text.as_bytes()).expect("a history");
    assert_eq!(histories.len(), 1);
    histories.remove(0)
}

fn is_noticed(history: &History) -> bool {
    matches!(
        check(history).outcome(),
        Outcome::Violated | Outcome::Unknown
    )
}

#[test]
fn a_history_that_was_right_is_said_to_be() {
    for text in [CLEAN, UNKNOWN] {
        let verdict = check(&recorded(text));
        assert_eq!(verdict.outcome(), Outcome::NoneSeen, "{verdict:?}");
        assert_eq!(verdict.attempts, 103);
    }
}

#[test]
fn each_kind_of_end_is_counted() {
    let clean = check(&recorded(CLEAN));
    assert_eq!((clean.refused, clean.unknown, clean.unsent), (54, 0, 0));
    let unknown = check(&recorded(UNKNOWN));
    assert_eq!(
        (unknown.unknown, unknown.unknown_happened, unknown.unsent),
        (61, 33, 34)
    );
}

#[test]
fn seats_sold_twice_and_lost_updates_are_found_and_counted() {
    let verdict = check(&recorded(LOCKING_OFF));
    assert_eq!(verdict.outcome(), Outcome::Violated);
    let count = |check| {
        verdict
            .findings
            .get(&check)
            .map_or(0, |finding| finding.count)
    };
    assert_eq!(count(Check::SeatAcknowledgedTwice), 18);
    assert_eq!(count(Check::LostUpdate), 36);
    assert_eq!(count(Check::WrongBalance), 0, "it says which are lost");
    assert_eq!(count(Check::MoneyAppearedOrVanished), 1);
    assert_eq!(verdict.violations(), 55);
    let wrong = verdict.wrong_measured_ns.len() as u64;
    assert_eq!(verdict.right_measured + wrong, verdict.acknowledged);
}

#[test]
fn where_nobody_met_anybody_nothing_was_exercised() {
    assert_eq!(check(&recorded(COLD)).outcome(), Outcome::NotExercised);
}

#[test]
fn without_the_final_state_nothing_is_said() {
    let history = History {
        kept: Err("nobody looked".to_owned()),
        ..recorded(CLEAN)
    };
    assert_eq!(check(&history).outcome(), Outcome::Unknown);
}

#[test]
fn a_history_is_read_as_it_was_written() {
    for text in [CLEAN, UNKNOWN, LOCKING_OFF, COLD] {
        let mut written = Vec::new();
        recorded(text).write(&mut written).expect("it is written");
        assert_eq!(String::from_utf8(written).expect("text"), text);
    }
}

#[test]
fn every_event_that_is_dropped_told_twice_or_of_another_attempt_is_noticed() {
    for text in [CLEAN, UNKNOWN] {
        let whole = recorded(text);
        let mut kinds = BTreeSet::new();
        for number in 0..whole.events.len() {
            let kind = name(&whole.events[number]);
            kinds.insert(kind);
            let mut dropped = whole.clone();
            dropped.events.remove(number);
            assert!(is_noticed(&dropped), "event {number} ({kind}) was dropped");

            let mut twice = whole.clone();
            twice.events.insert(number, twice.events[number].clone());
            assert!(is_noticed(&twice), "event {number} ({kind}) was told twice");

            let mut other = whole.clone();
            other.events[number].attempt = Uuid::from_u128(1);
            assert!(
                is_noticed(&other),
                "event {number} ({kind}) was of another attempt"
            );
        }
        println!("kinds of events: {kinds:?}");
    }
}

/// Whatever end is told instead of the true one, as far as it is not true as well.
#[test]
fn every_end_that_is_altered_is_noticed() {
    for text in [CLEAN, UNKNOWN] {
        let whole = recorded(text);
        let happened = happened(&whole);
        for (number, event) in whole.events.iter().enumerate() {
            let was_done = happened.contains(&event.attempt);
            for end in other_ends(event, was_done) {
                let mut altered = whole.clone();
                altered.events[number].what = end.clone();
                assert!(
                    is_noticed(&altered),
                    "event {number}, {event:?}, became {end:?}"
                );
            }
        }
    }
}

/// What was wanted is held against the record, where there is one.
#[test]
fn every_wish_that_was_done_and_is_altered_is_noticed() {
    for text in [CLEAN, UNKNOWN] {
        let whole = recorded(text);
        let happened = happened(&whole);
        let mut altered_wishes = 0;
        for (number, event) in whole.events.iter().enumerate() {
            if !happened.contains(&event.attempt) {
                continue;
            }
            for wish in other_wishes(event) {
                let mut altered = whole.clone();
                if let What::Invoked { wish: there, .. } = &mut altered.events[number].what {
                    *there = wish.clone();
                }
                altered_wishes += 1;
                assert!(
                    is_noticed(&altered),
                    "event {number}, {event:?}, became {wish:?}"
                );
            }
        }
        assert!(altered_wishes > 100, "{altered_wishes}");
    }
}

#[test]
fn every_record_that_is_dropped_told_twice_or_altered_is_noticed() {
    let whole = recorded(CLEAN);
    let kept = whole.kept.clone().expect("a final state");
    let with = |change: &dyn Fn(&mut crate::load::history::Kept)| {
        let mut altered = whole.clone();
        change(altered.kept.as_mut().expect("a final state"));
        is_noticed(&altered)
    };
    for number in 0..kept.bookings.len() {
        assert!(
            with(&|kept| drop(kept.bookings.remove(number))),
            "dropped booking {number}"
        );
        assert!(
            with(&|kept| kept.bookings.push(kept.bookings[number].clone())),
            "booking {number} twice"
        );
        assert!(
            with(&|kept| kept.bookings[number].id = Uuid::nil()),
            "id of booking {number}"
        );
        assert!(
            with(&|kept| kept.bookings[number].attempt = Uuid::nil()),
            "attempt of booking {number}"
        );
        assert!(
            with(&|kept| kept.bookings[number].seat.push('9')),
            "seat of booking {number}"
        );
        assert!(
            with(&|kept| kept.bookings[number].buyer.push('9')),
            "buyer of booking {number}"
        );
    }
    for number in 0..kept.transfers.len() {
        assert!(
            with(&|kept| drop(kept.transfers.remove(number))),
            "dropped transfer {number}"
        );
        assert!(
            with(&|kept| kept.transfers.push(kept.transfers[number].clone())),
            "transfer {number} twice"
        );
        assert!(
            with(&|kept| kept.transfers[number].id = Uuid::nil()),
            "id of transfer {number}"
        );
        assert!(
            with(&|kept| kept.transfers[number].attempt = Uuid::nil()),
            "attempt of transfer {number}"
        );
        assert!(
            with(&|kept| kept.transfers[number].amount += Decimal::ONE),
            "amount of transfer {number}"
        );
        assert!(
            with(&|kept| {
                let transfer = &mut kept.transfers[number];
                std::mem::swap(&mut transfer.from, &mut transfer.to);
            }),
            "direction of transfer {number}"
        );
    }
    for number in 0..kept.wallets.len() {
        assert!(
            with(&|kept| drop(kept.wallets.remove(number))),
            "dropped wallet {number}"
        );
        assert!(
            with(&|kept| kept.wallets.push(kept.wallets[number].clone())),
            "wallet {number} twice"
        );
        assert!(
            with(&|kept| kept.wallets[number].balance += Decimal::ONE),
            "balance of wallet {number}"
        );
        assert!(
            with(&|kept| kept.wallets[number].opening += Decimal::ONE),
            "opening of wallet {number}"
        );
    }
}

/// An update that is lost on the way there and on the way back leaves every balance right: only versions tell.
#[test]
fn a_lost_update_is_noticed_where_the_sum_is_right() {
    let mut history = recorded(CLEAN);
    let kept = history.kept.as_mut().expect("a final state");
    let read = kept.transfers[0].from_version_read;
    let giver = kept.transfers[0].from.clone();
    let next = kept
        .transfers
        .iter_mut()
        .skip(1)
        .find(|transfer| transfer.from == giver);
    next.expect("she gives again").from_version_read = read;
    let verdict = check(&history);
    assert_eq!(verdict.findings[&Check::LostUpdate].count, 1, "{verdict:?}");
}

/// Four transfers of 1 from w1 to w2, and which version each read and wrote of both.
fn transfers(versions: [(i64, i64); 4]) -> History {
    let mut history = recorded(COLD);
    history.events.clear();
    let mut all = history.kept.clone().expect("a final state");
    all.bookings.clear();
    all.transfers.clear();
    for (seq, (read, written)) in (1..).zip(versions) {
        let (attempt, amount) = (Uuid::from_u128(seq), Decimal::ONE);
        let (from, to) = ("w1".to_owned(), "w2".to_owned());
        let wish = Wish::Transfer { from, to, amount };
        let invoked = What::Invoked {
            intended_ns: 0,
            measured_ns: Some(0),
            target: String::new(),
            wish,
        };
        for what in [invoked, What::Ok { id: attempt }] {
            history.events.push(Event {
                at_ns: seq as u64,
                attempt,
                what,
            });
        }
        all.transfers.push(Transfer {
            seq: seq as i64,
            id: attempt,
            attempt,
            from: "w1".to_owned(),
            to: "w2".to_owned(),
            amount,
            replica: "A".to_owned(),
            lock: None,
            from_version_read: read,
            from_version_written: written,
            to_version_read: read,
            to_version_written: written,
        });
    }
    history.kept = Ok(all);
    history
}

/// Whoever reads between two others that overlap sees one of them: it is the last balance that tells whom.
#[test]
fn updates_on_which_the_last_balance_does_not_stand_are_lost() {
    let count = |versions| {
        let verdict = check(&transfers(versions));
        let lost = verdict.findings.get(&Check::LostUpdate);
        (lost.map_or(0, |lost| lost.count), verdict.right_measured)
    };
    assert_eq!(count([(1, 2), (2, 3), (3, 4), (4, 5)]), (0, 4));
    // The second has overwritten the first, and the fourth, which had read the second, has overwritten the third.
    assert_eq!(count([(1, 2), (1, 3), (2, 4), (3, 5)]), (4, 2));
    assert_eq!(count([(1, 2), (1, 3), (1, 4), (1, 5)]), (6, 1));
    // Who says that it read what was not written yet is believed nothing.
    assert_eq!(count([(1, 2), (2, 3), (9, 4), (4, 5)]), (0, 4));
}

#[test]
fn where_nothing_was_done_nothing_was_exercised() {
    let mut history = recorded(CLEAN);
    for event in &mut history.events {
        if !matches!(event.what, What::Invoked { .. }) {
            event.what = What::Refused {
                why: "lock-unavailable".to_owned(),
            };
        }
    }
    let mut all = history.kept.clone().expect("a final state");
    all.bookings.clear();
    all.transfers.clear();
    for wallet in &mut all.wallets {
        wallet.balance = wallet.opening;
    }
    history.kept = Ok(all);
    assert_eq!(check(&history).outcome(), Outcome::NotExercised);
}

/// More than a decimal holds is no reason to panic.
#[test]
fn money_beyond_counting_is_undecided() {
    let mut history = recorded(COLD);
    let kept = history.kept.as_mut().expect("a final state");
    for wallet in &mut kept.wallets {
        wallet.balance = Decimal::MAX;
        wallet.opening = Decimal::MAX;
    }
    assert_eq!(check(&history).outcome(), Outcome::Unknown);
}

/// Each check by itself: what is changed in a history is what it finds, and it alone or with what must come with it.
#[test]
fn every_check_finds_what_it_is_for() {
    let found = |text: &str, change: &dyn Fn(&mut History)| {
        let mut history = recorded(text);
        change(&mut history);
        let findings = check(&history).findings;
        findings.into_keys().collect::<Vec<_>>()
    };
    let kept = |history: &mut History| history.kept.clone().expect("a final state");

    let moved = found(CLEAN, &|history| {
        let mut all = kept(history);
        all.wallets[0].balance += Decimal::ONE;
        all.wallets[1].balance -= Decimal::ONE;
        history.kept = Ok(all);
    });
    assert_eq!(moved, [Check::WrongBalance], "a sum that is right");

    let made = found(CLEAN, &|history| {
        let mut all = kept(history);
        all.wallets[0].balance += Decimal::ONE;
        history.kept = Ok(all);
    });
    assert_eq!(made, [Check::WrongBalance, Check::MoneyAppearedOrVanished]);

    let below = found(CLEAN, &|history| {
        let mut all = kept(history);
        for wallet in &mut all.wallets {
            wallet.opening -= Decimal::from(10_000);
            wallet.balance -= Decimal::from(10_000);
        }
        history.kept = Ok(all);
    });
    assert_eq!(below, [Check::NegativeBalance]);

    let free = found(CLEAN, &|history| {
        let mut all = kept(history);
        let gone = all.bookings.remove(0).attempt;
        history.events.retain(|event| event.attempt != gone);
        history.kept = Ok(all);
    });
    assert_eq!(
        free,
        [Check::RefusedFree],
        "somebody was told that it is taken"
    );

    let once = found(LOCKING_OFF, &|history| {
        // One of two buyers was never told, and there is nothing else.
        let mut all = kept(history);
        let seat = all.bookings[0].seat.clone();
        all.bookings.retain(|booking| booking.seat == seat);
        all.transfers.clear();
        for wallet in &mut all.wallets {
            wallet.balance = wallet.opening;
        }
        let there: Vec<_> = all.bookings.iter().map(|booking| booking.attempt).collect();
        history
            .events
            .retain(|event| there.contains(&event.attempt));
        for event in &mut history.events {
            let is_told = there[1..].contains(&event.attempt);
            if is_told && matches!(event.what, What::Ok { .. }) {
                event.what = What::Unknown {
                    why: "timeout".to_owned(),
                };
            }
        }
        history.kept = Ok(all);
    });
    assert_eq!(once, [Check::SeatSoldTwice]);

    let missing = found(COLD, &|history| {
        let mut all = kept(history);
        all.bookings.pop();
        history.kept = Ok(all);
    });
    assert_eq!(missing, [Check::AcknowledgedMissing]);

    let nobody = found(COLD, &|history| {
        let last = history.events.last().expect("an event").attempt;
        history.events.retain(|event| event.attempt != last);
    });
    assert_eq!(nobody, [Check::NobodyAsked]);

    let happened = found(COLD, &|history| {
        history.events.last_mut().expect("an end").what = What::Refused {
            why: "lock-timeout".to_owned(),
        };
    });
    assert_eq!(happened, [Check::RefusedHappened]);
}

/// The attempts of which there is a record.
fn happened(history: &History) -> BTreeSet<Uuid> {
    let kept = history.kept.as_ref().expect("a final state");
    let bookings = kept.bookings.iter().map(|booking| booking.attempt);
    bookings
        .chain(kept.transfers.iter().map(|transfer| transfer.attempt))
        .collect()
}

/// Ends that are not true of an attempt.
fn other_ends(event: &Event, was_done: bool) -> Vec<What> {
    let why = || "altered".to_owned();
    let not_done = [What::Refused { why: why() }, What::Unsent { why: why() }];
    let done = What::Ok {
        id: Uuid::from_u128(2),
    };
    match (&event.what, was_done) {
        (What::Invoked { .. }, _) => Vec::new(),
        (_, true) => not_done.into_iter().chain([done]).collect(),
        (_, false) => vec![done],
    }
}

/// What might have been wanted instead.
fn other_wishes(event: &Event) -> Vec<Wish> {
    let What::Invoked { wish, .. } = &event.what else {
        return Vec::new();
    };
    let more = |text: &str| format!("{text}9");
    match wish {
        Wish::Book { seat, buyer } => vec![
            Wish::Book {
                seat: more(seat),
                buyer: buyer.clone(),
            },
            Wish::Book {
                seat: seat.clone(),
                buyer: more(buyer),
            },
        ],
        Wish::Transfer { from, to, amount } => vec![
            Wish::Transfer {
                from: more(from),
                to: to.clone(),
                amount: *amount,
            },
            Wish::Transfer {
                from: from.clone(),
                to: more(to),
                amount: *amount,
            },
            Wish::Transfer {
                from: from.clone(),
                to: to.clone(),
                amount: amount + Decimal::ONE,
            },
            Wish::Book {
                seat: from.clone(),
                buyer: to.clone(),
            },
        ],
    }
}

fn name(event: &Event) -> &'static str {
    match event.what {
        What::Invoked { .. } => "invoked",
        What::Ok { .. } => "ok",
        What::Refused { .. } => "refused",
        What::Unknown { .. } => "unknown",
        What::Unsent { .. } => "unsent",
    }
}
