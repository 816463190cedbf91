//! Until when each grant of this process stands, unless it is renewed.
//!
//! The item knows no time, so that a renewal that comes late would find nothing wrong with it: the holder's own process
//! must refuse it. What is given back is forgotten; what was left to run out, some time after it has.

use std::{collections::HashMap, sync::Mutex};

use tokio::time::Instant;

use crate::lock::{claim::Owner, unpoisoned};

/// How many grants there are at least before those that are over are looked for. Later it is twice as many as were left.
const FEW: usize = 64;

#[derive(Debug)]
pub(super) struct Granted(Mutex<Ends>);

#[derive(Debug)]
struct Ends {
    of: HashMap<Owner, Instant>,
    /// At which number those that are over are looked for.
    sweep_at: usize,
}

impl Default for Granted {
    fn default() -> Self {
        Self(Mutex::new(Ends {
            of: HashMap::new(),
            sweep_at: FEW,
        }))
    }
}

impl Granted {
    /// All keys of a claim were granted until then.
    pub(super) fn note(&self, owner: Owner, until: Instant) {
        let mut ends = unpoisoned::lock(&self.0);
        if ends.of.len() >= ends.sweep_at {
            let now = Instant::now();
            ends.of.retain(|_, end| *end > now);
            ends.sweep_at = (2 * ends.of.len()).max(FEW);
        }
        ends.of.insert(owner, until);
    }

    /// It was renewed, unless it was given back meanwhile.
    pub(super) fn extend(&self, owner: Owner, until: Instant) {
        if let Some(end) = unpoisoned::lock(&self.0).of.get_mut(&owner) {
            *end = until.max(*end);
        }
    }

    /// Whether it may still be renewed.
    pub(super) fn stands(&self, owner: Owner, now: Instant) -> bool {
        let ends = unpoisoned::lock(&self.0);
        ends.of.get(&owner).is_some_and(|end| *end > now)
    }

    /// It was given back.
    pub(super) fn forget(&self, owner: Owner) {
        unpoisoned::lock(&self.0).of.remove(&owner);
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        unpoisoned::lock(&self.0).of.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_grant_stands_until_it_is_over_or_given_back() {
        let (granted, now) = (Granted::default(), Instant::now());
        let (owner, second) = (Owner::random(), Duration::from_secs(1));
        assert!(!granted.stands(owner, now));
        granted.note(owner, now + second);
        assert!(granted.stands(owner, now));
        assert!(!granted.stands(owner, now + second));
        granted.extend(owner, now + 2 * second);
        assert!(granted.stands(owner, now + second));
        granted.forget(owner);
        granted.extend(owner, now + 3 * second);
        assert!(!granted.stands(owner, now));
    }

    #[test]
    fn what_was_left_to_run_out_is_forgotten() {
        let (granted, now) = (Granted::default(), Instant::now());
        for _ in 0..100_000 {
            granted.note(Owner::random(), now);
            assert!(granted.len() <= FEW);
        }
    }
}
