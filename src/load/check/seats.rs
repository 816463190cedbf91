//! One seat, one buyer.

use std::collections::{BTreeMap, HashSet};

use super::attempts::{Attempt, Attempts, End};
use super::{Check, Kept, Verdict, Wrong};
use crate::load::history::Wish;

/// What a replica says when somebody has the seat.
const TAKEN: &str = "seat-taken";

/// Returns the attempts that were acknowledged beyond the first one of their seat.
pub(super) fn check(attempts: &Attempts<'_>, kept: &Kept, verdict: &mut Verdict) -> Wrong {
    let mut acknowledged: BTreeMap<&str, Vec<&Attempt<'_>>> = BTreeMap::new();
    for (attempt, seat, _) in bookings(attempts) {
        if matches!(attempt.end, End::Ok { .. }) {
            acknowledged.entry(seat).or_default().push(attempt);
        }
    }
    let mut wrong = Wrong::new();
    for (seat, winners) in acknowledged
        .iter_mut()
        .filter(|(_, winners)| winners.len() > 1)
    {
        winners.sort_by_key(|winner| winner.ended_ns);
        wrong.extend(winners.iter().skip(1).map(|winner| winner.id));
        let buyers: Vec<_> = winners.iter().filter_map(|winner| buyer(winner)).collect();
        let example = format!("{seat} was acknowledged to {}", buyers.join(" and "));
        verdict.find(Check::SeatAcknowledgedTwice, 1, example);
    }

    let mut sold: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for booking in &kept.bookings {
        sold.entry(&booking.seat).or_default().push(&booking.buyer);
    }
    for (seat, buyers) in &sold {
        let was_told = acknowledged
            .get(seat)
            .is_some_and(|winners| winners.len() > 1);
        if buyers.len() > 1 && !was_told {
            let example = format!("{seat} was sold to {}", buyers.join(" and "));
            verdict.find(Check::SeatSoldTwice, 1, example);
        }
    }

    let sold: HashSet<&str> = sold.into_keys().collect();
    for (attempt, seat, buyer) in bookings(attempts) {
        if attempt.end == (End::Refused { why: TAKEN }) && !sold.contains(seat) {
            let example = format!("{buyer} was told that {seat} is taken, and it is free");
            verdict.find(Check::RefusedFree, 1, example);
        }
    }
    wrong
}

/// Attempts to book, each with its seat and buyer.
fn bookings<'a>(
    attempts: &'a Attempts<'a>,
) -> impl Iterator<Item = (&'a Attempt<'a>, &'a str, &'a str)> {
    attempts
        .all
        .iter()
        .filter_map(|attempt| match attempt.wish {
            Wish::Book { seat, buyer } => Some((attempt, seat.as_str(), buyer.as_str())),
            Wish::Transfer { .. } => None,
        })
}

fn buyer<'a>(attempt: &Attempt<'a>) -> Option<&'a str> {
    match attempt.wish {
        Wish::Book { buyer, .. } => Some(buyer),
        Wish::Transfer { .. } => None,
    }
}
