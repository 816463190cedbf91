//! The lock contract: what every lock system must do, whatever it is made of.
//!
//! The cases in `contract` are plain functions that say what went wrong. Each runs against every system through two
//! services over one store, as two processes would, since inside one the local queue would hide a broken lock.
//! `broken` turns the question around: systems with one flaw each must fail the case that is there for it.
//! `faults` puts a bad network between the layers and a good system.

mod broken;
mod contract;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "dynamodb")]
mod dynamodb_server;
#[cfg(feature = "full")]
mod ensemble;
#[cfg(feature = "etcd")]
mod etcd;
mod faults;
#[cfg_attr(
    not(feature = "full"),
    allow(dead_code, reason = "some faults are for one system only")
)]
mod forwarder;
mod in_memory;
#[allow(
    dead_code,
    reason = "here, it has a folder to remove and no process to end"
)]
#[path = "../replicas/support/keeper.rs"]
mod keeper;
mod mutex;
mod pair;
#[cfg(feature = "full")]
#[path = "../replicas/support/ports.rs"]
mod ports;
mod postgres_server;
#[cfg(feature = "full")]
mod processes;
mod pulse;
mod redis;
mod redis_hand_over;
mod redis_server;
mod redlock;
#[cfg(feature = "full")]
mod systems;
mod table;
mod table_postgres;
#[cfg(feature = "zookeeper")]
mod zookeeper;
#[cfg(feature = "zookeeper")]
mod zookeeper_server;

/// Makes a test of each of these cases, against the pair that `$connect` makes. What it returns besides the pair is
/// kept until the case is over.
macro_rules! cases {
    // Nothing there lasts less than the second that an ask without a wait has.
    ($connect:expr, every_lock: $($case:ident),+ $(,)?) => {
        crate::cases!($connect, every_lock, |_: &crate::pair::Pair| crate::pair::AT_ONCE; $($case),+);
    };
    ($connect:expr, leases: $($case:ident),+ $(,)?) => {
        crate::cases!($connect, leases, |pair: &crate::pair::Pair| pair.lease / 4; $($case),+);
    };
    ($connect:expr, $group:ident, $excuse:expr; $($case:ident),+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() -> anyhow::Result<()> {
                let connect = async || $connect.await;
                crate::pulse::without_a_stall(connect, crate::contract::$group::$case, $excuse).await
            }
        )+
    };
}

/// The cases for every lock.
macro_rules! every_lock {
    ($connect:expr) => {
        crate::cases!(
            $connect,
            every_lock: two_holders_never_overlap,
            an_ask_that_is_repeated_changes_nothing,
            a_stranger_frees_nothing,
            what_was_never_granted_is_not_renewed,
            the_wait_limit_is_kept,
            who_does_not_wait_asks_once,
            a_release_lets_the_next_one_in,
            a_future_that_is_dropped_leaves_nothing,
            a_holder_that_panics_frees_it,
            a_holder_dropped_outside_of_a_runtime_frees_it,
            two_keys_are_all_or_nothing,
            the_same_key_twice_is_one_key,
            opposite_orders_never_deadlock,
            a_key_is_not_its_prefix,
            hundreds_of_keys_leave_nothing,
        );
    };
}

/// The cases for locks that expire and have a token.
macro_rules! leases {
    ($connect:expr) => {
        crate::cases!(
            $connect,
            leases: tokens_rise_from_grant_to_grant,
            a_repeated_ask_keeps_its_token,
            a_lease_that_is_over_can_be_taken,
            each_acquisition_has_a_lease_time_of_its_own,
            a_lease_that_is_over_is_not_renewed,
            the_own_timer_tells_the_loss,
            a_late_release_does_not_free_the_next_holder,
            renewal_keeps_it_for_ten_lease_times,
            a_frozen_holder_loses_it,
            a_holder_that_thaws_in_time_keeps_it,
            an_abandoned_lock_is_free_when_its_lease_is_over,
        );
    };
}

/// The cases for locks that can be released blindly.
macro_rules! blind_releases {
    ($connect:expr) => {
        crate::cases!(
            $connect,
            leases: a_blind_release_frees_the_next_holder,
            the_lock_system_tells_the_loss,
            a_holder_can_ask_whether_it_is_still_the_owner,
        );
    };
}

use {blind_releases, cases, every_lock, leases};
