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
    numbers: Mutex<Numbers>,
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
    /// What its name ends with: nobody else's while this is here.
    number: u32,
    /// How often it was tried to take it out.
    leaves: u32,
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

/// Gives each claim a number that no other one has at the same time.
#[derive(Debug, Default)]
struct Numbers {
    free: Vec<u32>,
    last: u32,
}

impl Numbers {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.last += 1;
            self.last
        })
    }

    fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}

impl Entry {
    fn has(&self) -> Has {
        Has {
            in_doubt: self.has.in_doubt || self.open,
            ..self.has.clone()
        }
    }

    /// Whether all its requests were answered, the last one of which took it out.
    fn is_settled(&self) -> bool {
        self.leaves == 1 && !self.has().in_doubt
    }

    /// Whether it may go on by its name under this session. A request in doubt could hang what goes by that name on the
    /// old one again, with which it would end.
    fn may_hang_on(&self, session: &Session) -> bool {
        session.lease == self.has.session.lease || !self.has().in_doubt
    }

    fn is_over(&self, now: Instant) -> bool {
        self.since + self.has.session.ttl <= now
    }
}

impl Claims {
    /// Notes that a claim is asked for at `since`, and tells what it has as far as this process knows. `None` when the
    /// session is over.
    pub(super) fn ask(&self, claim: &Claim, session: &Arc<Session>, since: Instant) -> Option<Has> {
        let uses = session.enter()?;
        let mut all = unpoisoned::lock(&self.all);
        let known = all.remove(&claim.owner);
        let (has, watch, number, leaves) = match known.filter(|known| known.may_hang_on(session)) {
            Some(known) => (known.has(), known.watch, known.number, known.leaves),
            None => {
                let number = unpoisoned::lock(&self.numbers).take();
                let has = Has {
                    session: session.clone(),
                    name: names::claim(session.lease, number).into(),
                    places: vec![None; claim.keys.count()],
                    in_doubt: false,
                };
                (has, None, number, 0)
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
            number,
            leaves,
            _uses: uses,
        };
        all.insert(claim.owner, entry);
        drop(all);
        self.entered.notify_one();
        Some(has)
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

    /// Notes that a claim is about to be taken out, and tells what it has.
    pub(super) fn leave(&self, owner: Owner) -> Option<Has> {
        let mut all = unpoisoned::lock(&self.all);
        let entry = all.get_mut(&owner)?;
        entry.watch = None;
        entry.leaves += 1;
        Some(entry.has())
    }

    /// Notes that a claim was taken out.
    pub(super) fn left(&self, owner: Owner) {
        let Some(entry) = unpoisoned::lock(&self.all).remove(&owner) else {
            return;
        };
        if entry.is_settled() {
            unpoisoned::lock(&self.numbers).give_back(entry.number);
        }
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
    use std::time::Duration;

    use super::*;
    use crate::lock::key::Key;

    #[test]
    fn a_number_is_given_out_again_when_it_is_free_and_not_before() {
        let mut numbers = Numbers::default();
        let (first, second) = (numbers.take(), numbers.take());
        assert_ne!(first, second);
        numbers.give_back(first);
        assert_eq!(numbers.take(), first);
        assert!(![first, second].contains(&numbers.take()));
    }

    #[test]
    fn a_claim_keeps_its_name_under_another_lease_unless_a_request_is_in_doubt() {
        let ttl = Duration::from_secs(60);
        let claim = Claim {
            owner: Owner::random(),
            keys: Key::parse("a").unwrap().into(),
            ttl,
            alone: false,
            waits: true,
            patience: ttl,
        };
        let claims = Claims::default();
        let name_under = |lease| {
            let session = Arc::new(Session::new(lease, ttl, false, Instant::now()));
            let has = claims.ask(&claim, &session, Instant::now());
            has.unwrap().name
        };
        let first = name_under(1);
        claims.answered(claim.owner);
        assert_eq!(name_under(2), first, "all was answered");
        assert_eq!(name_under(2), first, "in doubt, under the same lease");
        claims.answered(claim.owner);
        assert_ne!(name_under(3), first, "the doubt stays");
    }
}
