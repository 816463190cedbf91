//! Whether anybody met anybody.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::attempts::{Attempt, Attempts, End};
use crate::load::history::Wish;

/// How many attempts were under way while another one was, for the same seat or wallet, as far as the generator saw.
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
        let mut longest: Option<&Attempt<'_>> = None;
        for attempt in attempts {
            if let Some(before) = longest.filter(|before| before.ended_ns > attempt.began_ns) {
                met.extend([before.id, attempt.id]);
            }
            if longest.is_none_or(|before| before.ended_ns < attempt.ended_ns) {
                longest = Some(attempt);
            }
        }
    }
    met.len() as u64
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
