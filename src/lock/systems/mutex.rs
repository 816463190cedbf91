//! `mutex`: a map in this process.
//!
//! It promises to exclude the tasks of one process. Two replicas have two maps and do not exclude each other, which
//! is what it is here to show. Nothing expires, there is no token that another replica could compare, and whatever
//! is granted goes with the process.
//!
//! A blind release would mean nothing here, so every release looks at the owner.

use std::{collections::HashMap, sync, time::Duration};

use async_trait::async_trait;

use crate::lock::{
    claim::{Claim, Grant, Owner},
    error::LockError,
    guarantees::LockName,
    key::Key,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal},
    unpoisoned,
    wakeups::Wakeups,
};

/// Grants locks inside one process.
#[derive(Debug, Default)]
pub struct Mutex {
    /// A key is here only while it is held.
    holders: sync::Mutex<HashMap<Key, Owner>>,
    wakeups: Wakeups,
}

impl Mutex {
    fn grant(&self, claim: &Claim) -> Answer {
        let mut holders = unpoisoned::lock(&self.holders);
        let taken = |key: &&Key| {
            holders
                .get(key)
                .is_some_and(|&holder| holder != claim.owner)
        };
        if let Some(key) = claim.keys.iter().find(taken) {
            return Answer::Refused {
                key: key.clone(),
                retry_in: None,
            };
        }
        holders.extend(claim.keys.iter().map(|key| (key.clone(), claim.owner)));
        Answer::Granted(Grant::without_tokens(&claim.keys))
    }

    fn is_held(&self, claim: &Claim) -> bool {
        let holders = unpoisoned::lock(&self.holders);
        let mut keys = claim.keys.iter();
        keys.all(|key| holders.get(key) == Some(&claim.owner))
    }

    /// Frees what the owner holds of these keys, and says whether that is all of them.
    fn free(&self, claim: &Claim) -> bool {
        let mut holders = unpoisoned::lock(&self.holders);
        let before = holders.len();
        for key in &claim.keys {
            if holders.get(key) == Some(&claim.owner) {
                holders.remove(key);
            }
        }
        before - holders.len() == claim.keys.count()
    }
}

#[async_trait]
impl LockSystem for Mutex {
    fn name(&self) -> LockName {
        LockName::Mutex
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        Ok(self.grant(claim))
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        Ok(if self.is_held(claim) {
            Renewal::Kept
        } else {
            Renewal::Lost
        })
    }

    async fn release(&self, claim: &Claim, _: ReleaseMode) -> Result<Released, LockError> {
        let all = self.free(claim);
        claim.keys.iter().for_each(|key| self.wakeups.wake(key));
        Ok(if all {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }

    fn wakeups(&self) -> Option<&Wakeups> {
        Some(&self.wakeups)
    }

    fn lease_time(&self, _: Duration) -> Option<Duration> {
        None
    }
}
