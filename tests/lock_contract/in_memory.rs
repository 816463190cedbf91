//! A lock system in memory, with leases and tokens. It keeps the contract, or has one flaw.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use doublebook::lock::{
    Answer, Claim, Grant, Key, LockError, LockName, LockSystem, Owner, ReleaseMode, Released,
    Renewal, Token,
};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    TwoWinners,
    ReleasesForAnyone,
    TokenRepeats,
    NeverExpires,
    KeepsTheLeaseTime,
    CutsTheLeaseTime,
    KeepsAPart,
    CountsARepeatAsNew,
    RefusesARepeat,
    RenewalRevives,
    RenewalDoesNothing,
    ReleaseDoesNothing,
    LooksAtTheOwnerOfABlindRelease,
}

pub struct InMemory {
    flaw: Flaw,
    leases: Mutex<HashMap<Key, Lease>>,
}

#[derive(Clone, Copy)]
struct Lease {
    owner: Option<Owner>,
    token: i64,
    ttl: Duration,
    ends: Instant,
}

impl InMemory {
    pub fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            leases: Mutex::default(),
        }
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Key, Lease>> {
        self.leases
            .lock()
            .expect("nobody panics while it is locked")
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn is_over(&self, lease: &Lease) -> bool {
        lease.owner.is_none() || (lease.ends <= Instant::now() && !self.has(Flaw::NeverExpires))
    }

    /// The lease time of a new grant.
    fn lease_time(&self, lease: Option<&Lease>, wanted: Duration) -> Duration {
        let before = lease.map_or(wanted, |lease| lease.ttl);
        match self.flaw {
            Flaw::KeepsTheLeaseTime => wanted.max(before),
            Flaw::CutsTheLeaseTime => wanted.min(before),
            _ => wanted,
        }
    }

    /// The token of a new grant, or nothing if somebody else has the key.
    fn take(&self, lease: Option<&Lease>, owner: Owner) -> Option<i64> {
        let Some(lease) = lease else { return Some(1) };
        let step = i64::from(!self.has(Flaw::TokenRepeats));
        let mine = lease.owner == Some(owner) && !self.has(Flaw::RefusesARepeat);
        if mine && !self.has(Flaw::CountsARepeatAsNew) {
            return Some(lease.token);
        }
        (mine || self.is_over(lease) || self.has(Flaw::TwoWinners)).then_some(lease.token + step)
    }
}

#[async_trait]
impl LockSystem for InMemory {
    fn name(&self) -> LockName {
        LockName::Table
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        let mut leases = self.leases();
        let before = leases.clone();
        let mut granted = Vec::new();
        for key in &claim.keys {
            let Some(token) = self.take(leases.get(key), claim.owner) else {
                if !self.has(Flaw::KeepsAPart) {
                    *leases = before;
                }
                return Ok(Answer::Refused {
                    key: key.clone(),
                    retry_in: None,
                });
            };
            let ttl = self.lease_time(leases.get(key), claim.ttl);
            let lease = Lease {
                owner: Some(claim.owner),
                token,
                ttl,
                ends: Instant::now() + ttl,
            };
            leases.insert(key.clone(), lease);
            granted.push((key.clone(), Token::new(token)));
        }
        Ok(Answer::Granted(Grant::from_iter(granted)))
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let mut leases = self.leases();
        for key in &claim.keys {
            let Some(lease) = leases.get_mut(key) else {
                return Ok(Renewal::Lost);
            };
            let over = self.is_over(lease) && !self.has(Flaw::RenewalRevives);
            if lease.owner != Some(claim.owner) || over {
                return Ok(Renewal::Lost);
            }
            if !self.has(Flaw::RenewalDoesNothing) {
                lease.ends = Instant::now() + claim.ttl;
            }
        }
        Ok(Renewal::Kept)
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        let blind = mode == ReleaseMode::Blind && !self.has(Flaw::LooksAtTheOwnerOfABlindRelease);
        let mut leases = self.leases();
        let mut all = true;
        for key in &claim.keys {
            let lease = leases.get_mut(key).filter(|lease| {
                lease.owner == Some(claim.owner) || blind || self.has(Flaw::ReleasesForAnyone)
            });
            match lease {
                Some(_) if self.has(Flaw::ReleaseDoesNothing) => {}
                Some(lease) => lease.owner = None,
                None => all = false,
            }
        }
        Ok(if all {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }
}
