//! Whether anybody met anybody who was served.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::attempts::{Attempt, Attempts, End};
use crate::load::history::Wish;

/// How many attempts were under way while another one was, for the same seat or wallet, as far as the generator saw. Of two
/// that met at least one was done: where everybody is refused, nothing could have gone wrong.
pub(super) fn contended(attempts: &Attempts<'_>) -> u64 {
    let mut by_key: HashMap<(Kind, &str), Vec<&Attempt<'_>>> = HashMap::new();
    for attempt in &attempts.all {
        if attempt.end == End::Unsent {
            continue;
        }
        for key in keys(attempt.wish) {
            by_key.entry(key).or_default().push(attempt);
        }
    }
    let mut met: HashSet<Uuid> = HashSet::new();
    for mut attempts in by_key.into_values() {
        attempts.sort_by_key(|attempt| attempt.began_ns);
        meet(&attempts, &mut met);
    }
    met.len() as u64
}

/// Finds those who met among attempts for one thing, in the order in which they began.
fn meet(attempts: &[&Attempt<'_>], met: &mut HashSet<Uuid>) {
    // Under way, and have met nobody yet.
    let mut alone: Vec<&Attempt<'_>> = Vec::new();
    // When the last one ends of those that have begun, and of those of them that were done.
    let (mut last_end, mut last_end_of_done) = (0, 0);
    for attempt in attempts {
        alone.retain(|before| before.ended_ns > attempt.began_ns);
        let (meeting, others): (Vec<_>, Vec<_>) = alone
            .into_iter()
            .partition(|before| is_done(attempt) || is_done(before));
        met.extend(meeting.iter().map(|before| before.id));
        alone = others;

        let last_to_meet = if is_done(attempt) {
            last_end
        } else {
            last_end_of_done
        };
        if last_to_meet > attempt.began_ns {
            met.insert(attempt.id);
        } else {
            alone.push(attempt);
        }
        last_end = last_end.max(attempt.ended_ns);
        if is_done(attempt) {
            last_end_of_done = last_end_of_done.max(attempt.ended_ns);
        }
    }
}

fn is_done(attempt: &Attempt<'_>) -> bool {
    matches!(attempt.end, End::Ok { .. })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Seat,
    Wallet,
}

fn keys(wish: &Wish) -> Vec<(Kind, &str)> {
    match wish {
        Wish::Book { seat, .. } => vec![(Kind::Seat, seat)],
        Wish::Transfer { from, to, .. } => vec![(Kind::Wallet, from), (Kind::Wallet, to)],
    }
}
