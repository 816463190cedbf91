//! The load generator against two real replicas: the real binary three times, asked and asking over HTTP only.
//!
//! The rules of the tests in `replicas` hold here too, whose harness this uses. Outcomes and counts are asserted; how
//! fast anything was is only printed, or compared with something slower by far.

#[macro_use]
#[path = "../replicas/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the harness is shared, and each of its users needs another part of it"
)]
mod support;

/// A run of `doublebook load`.
mod generator;

/// Locking off is seen to go wrong, and every lock is not.
mod sides;

/// The same seed, turns, repetitions.
mod schedules;

/// A replica that stands still is seen by those who would have come.
mod latency;

/// Connections that are refused, reset, closed, silent, or too many.
mod failures;

/// What cannot be asked for, and how a run exits.
mod exit_codes;

/// A run that is stopped.
mod stopped;

/// A run whose room somebody else changes.
mod disturbed;

/// What bookings are measured against is what they send.
mod statements;

/// The page that starts a run.
mod form;

/// The page of a run.
mod page;
