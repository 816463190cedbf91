//! What the claims of this process have at the server.
//!
//! A claim is here from before its first request until the server has answered that it was taken out. One that was
//! neither asked for nor renewed for its lease time is over, as its holder knows; on a shared lease, which others keep
//! alive, its keys are then deleted one by one. (So ends what was abandoned, or held for too long.)

use std::{collections::HashMap, sync::Arc, sync::Mutex};

use tokio::{sync::Notify, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{line::Places, session::Session};
use crate::lock::{
    claim::{Claim, Owner},
    gauge::Counted,
    unpoisoned,
};

/// All claims of this process.
#[derive(Debug, Default)]
pub(super) struct Claims {
    all: Mutex<HashMap<Owner, Entry>>,
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
    _uses: Counted,
}

/// What one claim has at the server.
#[derive(Debug, Clone)]
pub(super) struct Has {
    pub(super) session: Arc<Session>,
    pub(super) places: Places,
    /// A request for it was not answered, and may yet be carried out, whatever was asked since.
    pub(super) in_doubt: bool,
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
    /// Notes that a claim is asked for at `since`, and says where it stands as far as this process knows.
    pub(super) fn ask(&self, claim: &Claim, session: &Arc<Session>, since: Instant) -> Places {
        let mut all = unpoisoned::lock(&self.all);
        let known = all.remove(&claim.owner);
        let (places, in_doubt, watch) = match known {
            Some(Entry {
                has, open, watch, ..
            }) => (has.places, has.in_doubt || open, watch),
            None => (vec![None; claim.keys.count()], false, None),
        };
        let entry = Entry {
            has: Has {
                session: session.clone(),
                places: places.clone(),
                in_doubt,
            },
            open: true,
            claim: claim.clone(),
            since,
            watch,
            _uses: session.enter(),
        };
        all.insert(claim.owner, entry);
        drop(all);
        self.entered.notify_one();
        places
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
