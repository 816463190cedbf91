//! Deliberately broken lock systems must fail the contract, or it proves nothing.
//!
//! One system in memory, with leases and tokens, that keeps the contract; and its flaws, one at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use doublebook::lock::{
    Answer, Claim, Grant, Key, LockError, LockName, LockSystem, Owner, ReleaseMode, Released,
    Renewal, Token,
};

use crate::{
    contract::{every_lock, leases},
    pair::Pair,
};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    TwoWinners,
    ReleasesForAnyone,
    TokenRepeats,
    NeverExpires,
    KeepsAPart,
    CountsARepeatAsNew,
    RefusesARepeat,
    RenewalRevives,
    RenewalDoesNothing,
    ReleaseDoesNothing,
    LooksAtTheOwnerOfABlindRelease,
}

struct InMemory {
    flaw: Flaw,
    leases: Mutex<HashMap<Key, Lease>>,
}

#[derive(Clone, Copy)]
struct Lease {
    owner: Option<Owner>,
    token: i64,
    ends: Instant,
}

impl InMemory {
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
        let ends = Instant::now() + claim.ttl;
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
            let owner = Some(claim.owner);
            leases.insert(key.clone(), Lease { owner, token, ends });
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

fn pair(flaw: Flaw) -> Pair {
    let system = Arc::new(InMemory {
        flaw,
        leases: Mutex::default(),
    });
    Pair::over(system.clone(), system)
}

mod without_a_flaw {
    use super::{Flaw, Pair, Result, pair};

    async fn connect() -> Result<(Pair, ())> {
        Ok((pair(Flaw::None), ()))
    }

    crate::every_lock!(connect());
    crate::leases!(connect());
}

/// Makes a test that the flaw fails the case.
macro_rules! fails {
    ($($test:ident: $flaw:ident fails $group:ident::$case:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> Result<()> {
                let verdict = $group::$case(&pair(Flaw::$flaw)).await;
                println!("{:?}: {verdict:?}", Flaw::$flaw);
                ensure!(verdict.is_err(), "{:?} passes {}", Flaw::$flaw, stringify!($case));
                Ok(())
            }
        )+
    };
}

fails! {
    two_winners_are_seen: TwoWinners fails every_lock::two_holders_never_overlap;
    two_winners_do_not_keep_the_wait_limit: TwoWinners fails every_lock::the_wait_limit_is_kept;
    a_release_for_anyone_is_seen: ReleasesForAnyone fails every_lock::a_stranger_frees_nothing;
    a_late_release_for_anyone_is_seen:
        ReleasesForAnyone fails leases::a_late_release_does_not_free_the_next_holder;
    a_token_that_repeats_is_seen: TokenRepeats fails leases::tokens_rise_from_grant_to_grant;
    a_lease_that_never_ends_is_seen: NeverExpires fails leases::a_lease_that_is_over_can_be_taken;
    a_part_that_is_kept_is_seen: KeepsAPart fails every_lock::two_keys_are_all_or_nothing;
    a_repeat_that_counts_is_seen: CountsARepeatAsNew fails leases::a_repeated_ask_keeps_its_token;
    a_repeat_that_is_refused_is_seen:
        RefusesARepeat fails every_lock::an_ask_that_is_repeated_changes_nothing;
    a_renewal_that_revives_is_seen: RenewalRevives fails leases::a_lease_that_is_over_is_not_renewed;
    a_renewal_that_does_nothing_is_seen:
        RenewalDoesNothing fails leases::renewal_keeps_it_for_ten_lease_times;
    a_release_that_does_nothing_is_seen:
        ReleaseDoesNothing fails every_lock::a_future_that_is_dropped_leaves_nothing;
    a_blind_release_that_looks_is_seen:
        LooksAtTheOwnerOfABlindRelease fails leases::a_blind_release_frees_the_next_holder;
}
