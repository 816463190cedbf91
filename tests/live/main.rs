//! The stream of a room, as a page reads it: two replicas of the real program, asked over HTTP only.
//!
//! The rules of the tests in `replicas` hold here too, whose harness this uses. A stream is read by a [`Stream`], which
//! keeps every event and waits for conditions on what it has read.
//!
//! [`Stream`]: stream::Stream

#[macro_use]
#[path = "../replicas/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the harness is shared, and each of its users needs another part of it"
)]
mod support;

/// A stream as a page reads it.
mod stream;

/// What a stream looks like, what it begins with, and what is not one.
mod form;

/// What is told of attempts, by whichever replica they run on.
mod steps;

/// What is told of seats, wallets, audit and switches.
mod changes;

/// Pages that come back.
mod resume;

/// Replicas that are silent, killed, stopped.
mod replicas;

/// A room that was filled some seconds ago.
mod filled;

/// Many readers, some of whom never read.
mod crowd;
