//! What the claims of this process have at the server.
//!
//! A claim is here from before its first request until the server has answered that it was taken out. One that was
//! neither asked for nor renewed for its lease time is over, as its holder knows; on a shared lease, which others keep
//! alive, its keys are then deleted one by one. (So ends what was abandoned, or held for too long.)

use std::{collections::HashMap, sync::Arc, sync::Mutex};

use tokio::{sync::Notify, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{line::Places, names, session::Session};
use crate::lock::{
    claim::{Claim, Owner},
    gauge::Counted,
    unpoisoned,
};

/// All claims of this process.
#[derive(Debug, Default)]
pub(super) struct Claims {
    all: Mutex<HashMap<Owner, Entry>>,
    slots: Slots,
    /// There is one more.
    pub(super) entered: Notify,
}

/// What one claim has.
#[derive(Debug)]
struct Entry {
    has: Has,
    claim: Claim,
    /// It is being asked for, or the last ask was not answered.
    open: bool,
    /// When it was last asked for or renewed.
    since: Instant,
    /// Wakes the waiter when who stands before it is gone.
    watch: Option<AbortOnDropHandle<()>>,
    /// Nobody else's while this is here.
    slot: Slot,
    _uses: Counted,
}

/// What one claim has at the server.
#[derive(Debug, Clone)]
pub(super) struct Has {
    pub(super) session: Arc<Session>,
    /// What its keys are called in the folders of its locks.
    pub(super) name: Arc<str>,
    pub(super) places: Places,
    /// A request for it was not answered, and may yet be carried out, whatever was asked since.
    pub(super) in_doubt: bool,
}

/// Numbers for those that are here at the same time; one that is free is given out again.
#[derive(Debug, Clone, Default)]
struct Slots(Arc<Mutex<FreeSlots>>);

#[derive(Debug, Default)]
struct FreeSlots {
    given_back: Vec<u32>,
    next: u32,
}

/// A number that is given back when this is dropped.
#[derive(Debug)]
struct Slot {
    number: u32,
    slots: Slots,
}

impl Slots {
    fn take(&self) -> Slot {
        let mut free = unpoisoned::lock(&self.0);
        let number = free.given_back.pop().unwrap_or_else(|| {
            free.next += 1;
            free.next
        });
        Slot {
            number,
            slots: self.clone(),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut free = unpoisoned::lock(&self.slots.0);
        free.given_back.push(self.number);
    }
}

impl Entry {
    fn has(&self) -> Has {
        Has {
            in_doubt: self.has.in_doubt || self.open,
            ..self.has.clone()
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.since + self.has.session.ttl <= now
    }
}

impl Claims {
    /// Notes that a claim is asked for at `since`, and tells what it has as far as this process knows.
    pub(super) fn ask(&self, claim: &Claim, session: &Arc<Session>, since: Instant) -> Has {
        let mut all = unpoisoned::lock(&self.all);
        let (has, watch, slot) = match all.remove(&claim.owner) {
            Some(known) => (known.has(), known.watch, known.slot),
            None => {
                let slot = self.slots.take();
                let has = Has {
                    session: session.clone(),
                    name: names::claim(session.lease, slot.number).into(),
                    places: vec![None; claim.keys.count()],
                    in_doubt: false,
                };
                (has, None, slot)
            }
        };
        let has = Has {
            session: session.clone(),
            ..has
        };
        let entry = Entry {
            has: has.clone(),
            open: true,
            claim: claim.clone(),
            since,
            watch,
            slot,
            _uses: session.enter(),
        };
        all.insert(claim.owner, entry);
        drop(all);
        self.entered.notify_one();
        has
    }

    /// Notes that the last ask was answered.
    pub(super) fn answered(&self, owner: Owner) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner) {
            entry.open = false;
        }
    }

    /// Notes that a request for a claim was sent again without an answer to the first one.
    pub(super) fn doubt(&self, owner: Owner) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner) {
            entry.has.in_doubt = true;
        }
    }

    /// Notes where a claim stands.
    pub(super) fn stands(&self, owner: Owner, places: Places) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner) {
            entry.has.places = places;
        }
    }

    /// Watches for a claim, unless it is being watched for already.
    pub(super) fn watch(&self, owner: Owner, watch: impl Future<Output = ()> + Send + 'static) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner)
            && entry
                .watch
                .as_ref()
                .is_none_or(AbortOnDropHandle::is_finished)
        {
            entry.watch = Some(AbortOnDropHandle::new(tokio::spawn(watch)));
        }
    }

    /// Watches for a claim no more.
    pub(super) fn stop_watching(&self, owner: Owner) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner) {
            entry.watch = None;
        }
    }

    /// Notes that a claim was renewed at `since`.
    pub(super) fn renewed(&self, owner: Owner, since: Instant) {
        if let Some(entry) = unpoisoned::lock(&self.all).get_mut(&owner) {
            entry.since = since;
        }
    }

    /// What a claim has.
    pub(super) fn get(&self, owner: Owner) -> Option<Has> {
        let all = unpoisoned::lock(&self.all);
        all.get(&owner).map(Entry::has)
    }

    /// What a claim has, unless it is over.
    pub(super) fn standing(&self, owner: Owner) -> Option<Has> {
        let all = unpoisoned::lock(&self.all);
        let entry = all.get(&owner)?;
        (!entry.is_over(Instant::now())).then(|| entry.has())
    }

    pub(super) fn remove(&self, owner: Owner) {
        unpoisoned::lock(&self.all).remove(&owner);
    }

    pub(super) fn is_empty(&self) -> bool {
        unpoisoned::lock(&self.all).is_empty()
    }

    /// The claims that are over and hang on a shared lease that others keep alive. Those whose lease is over as well
    /// are forgotten.
    pub(super) fn overdue(&self) -> Vec<Claim> {
        let now = Instant::now();
        let mut all = unpoisoned::lock(&self.all);
        all.retain(|_, entry| {
            let Has { session, .. } = &entry.has;
            !entry.is_over(now) || !(session.alone || session.is_over())
        });
        let over = all.values().filter(|entry| entry.is_over(now));
        over.map(|entry| entry.claim.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_out_again_when_it_is_free_and_not_before() {
        let slots = Slots::default();
        let (first, second) = (slots.take(), slots.take());
        assert_ne!(first.number, second.number);
        let freed = first.number;
        drop(first);
        assert_eq!(slots.take().number, freed);
        drop(second);
        for _ in 0..1000 {
            assert!(slots.take().number <= 2);
        }
    }
}
