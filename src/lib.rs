//! doublebook: what really protects a seat when two servers sell it at once?
//!
//! The modules stand in the order in which a request meets them. `docs/architecture.md` walks the same way.

/// What the binary can be told to do: run everything, one replica, or a guard.
pub mod commands;

/// Distributed locks as a library: it knows nothing of seats, rooms or HTTP.
pub mod lock;

/// Real servers, started for `up` and for the tests.
pub mod stack;
