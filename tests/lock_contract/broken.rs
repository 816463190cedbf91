//! Deliberately broken lock systems must fail the contract, or it proves nothing.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::{
    contract::{every_lock, leases},
    in_memory::{Flaw, InMemory},
    pair::Pair,
};

fn pair(flaw: Flaw) -> Pair {
    let system = Arc::new(InMemory::new(flaw));
    Pair::over(system.clone(), system)
}

mod without_a_flaw {
    use super::{Flaw, Pair, Result, pair};

    async fn connect() -> Result<(Pair, ())> {
        Ok((pair(Flaw::None), ()))
    }

    crate::every_lock!(connect());
    crate::leases!(connect());
    crate::blind_releases!(connect());
}

/// Makes a test that the flaw fails the case.
macro_rules! fails {
    ($($test:ident: $flaw:ident fails $group:ident::$case:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> Result<()> {
                let verdict = $group::$case(&pair(Flaw::$flaw)).await;
                let Err(seen) = verdict else {
                    bail!("{:?} passes {}", Flaw::$flaw, stringify!($case));
                };
                println!("{:?} is seen: {seen}", Flaw::$flaw);
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
    a_lease_time_that_lasts_is_seen:
        KeepsTheLeaseTime fails leases::each_acquisition_has_a_lease_time_of_its_own;
    a_lease_time_that_is_cut_short_is_seen:
        CutsTheLeaseTime fails leases::each_acquisition_has_a_lease_time_of_its_own;
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
