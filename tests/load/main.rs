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
