//! What this process has seen of the locks that others hold: since when each stands still.
//!
//! DynamoDB compares no times, so a lease is over when the version in its item has stood still for the whole length
//! of the lease, on the clock of who watches it. The clock starts after the item was read, and the version is new with
//! each grant and each renewal: one that was read twice cannot have changed in between. So what is remembered here can
//! be old, but never wrong.
//!
//! One observation for each key, shared by all who ask for it and kept between their asks; who asks once every minute
//! finds out, too. (awslabs/amazon-dynamodb-lock-client, issue 114.)

use std::{collections::HashMap, sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::lock::{key::Key, many::Keys, unpoisoned};

/// How many keys are watched at most: as many as may have waiters. Beyond it, the one that was not asked for longest is
/// forgotten, and its next observer begins anew.
pub(super) const MOST_WATCHED: usize = crate::lock::queue::MOST_WAITERS;

/// How long a key is watched that nobody asks for, or for twice its lease if that is longer.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// How often what nobody asks for is looked for.
const SWEEPS: Duration = Duration::from_secs(10);

/// A lease as its item tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) version: String,
    pub(super) lease: Duration,
}

#[derive(Debug)]
pub(super) struct Watch(Mutex<Watched>);

#[derive(Debug)]
struct Watched {
    keys: HashMap<Key, Observation>,
    swept: Instant,
}

#[derive(Debug)]
struct Observation {
    standing: Standing,
    /// When it was first read.
    since: Instant,
    /// When it was last read.
    asked: Instant,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(Watched {
            keys: HashMap::new(),
            swept: now,
        }))
    }

    /// The version that has stood still for so long that its lease is over.
    pub(super) fn is_over(&self, key: &Key, now: Instant) -> Option<String> {
        let watched = unpoisoned::lock(&self.0);
        let seen = watched.keys.get(key)?;
        seen.left(now)
            .is_zero()
            .then(|| seen.standing.version.clone())
    }

    /// Takes note of a lease that refused an ask, read before `now`. Answers when it is over unless it is renewed.
    pub(super) fn note(&self, key: &Key, standing: Standing, now: Instant) -> Duration {
        let mut watched = unpoisoned::lock(&self.0);
        watched.make_room(now);
        let seen = watched
            .keys
            .entry(key.clone())
            .or_insert_with(|| Observation::new(standing.clone(), now));
        if seen.standing == standing {
            seen.asked = now;
        } else {
            *seen = Observation::new(standing, now);
        }
        seen.left(now)
    }

    /// Nobody else holds it any more.
    pub(super) fn forget(&self, key: &Key) {
        unpoisoned::lock(&self.0).keys.remove(key);
    }

    /// The keys in the order in which to ask for them: first those that somebody was seen holding. Who is refused there
    /// has not taken, for a moment, the others that it would have to give back.
    pub(super) fn held_first<'a>(&self, keys: &'a Keys) -> Vec<&'a Key> {
        let watched = unpoisoned::lock(&self.0);
        let mut keys: Vec<&Key> = keys.iter().collect();
        keys.sort_by_key(|key| !watched.keys.contains_key(*key));
        keys
    }

    /// How many keys are watched.
    pub(super) fn len(&self) -> usize {
        unpoisoned::lock(&self.0).keys.len()
    }
}

impl Watched {
    fn make_room(&mut self, now: Instant) {
        if now - self.swept >= SWEEPS {
            self.swept = now;
            self.keys.retain(|_, seen| !seen.is_stale(now));
        }
        if self.keys.len() < MOST_WATCHED {
            return;
        }
        let longest = self.keys.iter().min_by_key(|(_, seen)| seen.asked);
        if let Some(key) = longest.map(|(key, _)| key.clone()) {
            self.keys.remove(&key);
        }
    }
}

impl Observation {
    fn new(standing: Standing, now: Instant) -> Self {
        Self {
            standing,
            since: now,
            asked: now,
        }
    }

    fn left(&self, now: Instant) -> Duration {
        self.standing.lease.saturating_sub(now - self.since)
    }

    fn is_stale(&self, now: Instant) -> bool {
        now - self.asked > KEPT_FOR.max(self.standing.lease.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(2);

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn standing(version: &str) -> Standing {
        Standing {
            version: version.to_owned(),
            lease: LEASE,
        }
    }

    #[test]
    fn a_version_that_stands_still_for_its_lease_is_over() {
        let began = Instant::now();
        let watch = Watch::new(began);
        let a = key("a");
        assert_eq!(watch.is_over(&a, began), None);
        assert_eq!(watch.note(&a, standing("v1"), began), LEASE);
        let half = began + LEASE / 2;
        assert_eq!(watch.note(&a, standing("v1"), half), LEASE / 2);
        assert_eq!(watch.is_over(&a, half), None);
        let over = watch.is_over(&a, began + LEASE);
        assert_eq!(over.as_deref(), Some("v1"));
    }

    #[test]
    fn a_renewal_begins_the_observation_anew() {
        let began = Instant::now();
        let watch = Watch::new(began);
        let a = key("a");
        watch.note(&a, standing("v1"), began);
        watch.note(&a, standing("v2"), began + LEASE / 2);
        assert_eq!(watch.is_over(&a, began + LEASE), None);
        let over = watch.is_over(&a, began + LEASE * 3 / 2);
        assert_eq!(over.as_deref(), Some("v2"));
    }

    #[test]
    fn who_asks_seldom_finds_out_as_well() {
        let began = Instant::now();
        let watch = Watch::new(began);
        let a = key("a");
        watch.note(&a, standing("v1"), began);
        let later = began + KEPT_FOR - SWEEPS;
        watch.note(&key("b"), standing("other"), later);
        assert!(watch.is_over(&a, later).is_some());
    }

    #[test]
    fn what_nobody_asks_for_is_forgotten() {
        let began = Instant::now();
        let watch = Watch::new(began);
        let long = Standing {
            lease: KEPT_FOR,
            ..standing("long")
        };
        watch.note(&key("long"), long, began);
        watch.note(&key("short"), standing("short"), began);
        watch.note(&key("b"), standing("b"), began + KEPT_FOR + SWEEPS);
        assert_eq!(watch.len(), 2, "the long lease and b");
        watch.forget(&key("b"));
        assert_eq!(watch.len(), 1);
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let began = Instant::now();
        let watch = Watch::new(began);
        for number in 0..MOST_WATCHED + 3 {
            let now = began + Duration::from_micros(u64::try_from(number).unwrap());
            watch.note(&key(&number.to_string()), standing("v"), now);
        }
        assert_eq!(watch.len(), MOST_WATCHED);
        let over = |number: &str| watch.is_over(&key(number), began + LEASE * 2);
        assert_eq!(over("2"), None, "the oldest are forgotten");
        assert!(over("3").is_some());
    }

    #[test]
    fn keys_that_others_hold_are_asked_for_first() {
        let watch = Watch::new(Instant::now());
        watch.note(&key("c"), standing("v"), Instant::now());
        let keys = Keys::new(["a", "b", "c"].map(key)).unwrap();
        let order: Vec<_> = watch
            .held_first(&keys)
            .into_iter()
            .map(Key::as_str)
            .collect();
        assert_eq!(order, ["c", "a", "b"]);
    }
}
