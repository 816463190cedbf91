//! The page as a browser shows it: headless Chromium before two replicas of the real program.
//!
//! The rules of the tests in `replicas` hold here too, whose harness this uses. A test has a [`Browser`] to itself and
//! looks at what a reader of the page sees. Nothing sleeps: it waits for a condition with a deadline. One browser runs
//! at a time, so that a small machine does not make each of them slow.
//!
//! [`Browser`]: browser::Browser

#[macro_use]
#[path = "../replicas/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the harness is shared, and each of its users needs another part of it"
)]
mod support;

/// Chromium, its driver, and what a test does with them.
mod browser;

/// The largest control.
mod toggle;

/// Seats by mouse, and by keyboard alone.
mod booking;

/// What the tab key reaches, and how it is seen.
mod tab_key;

/// The page of a room by keyboard alone.
mod keyboard;

/// Each race by its button, with its diagram.
mod races;

/// Two windows on two replicas, and many tabs.
mod windows;

/// A room that is laid out anew.
mod anew;

/// A room of ten thousand seats.
mod large;

/// Replicas that stand still or die.
mod outages;

/// A load run from its page.
mod load;

/// Reload, back and double click.
mod once;

/// No script error, no other host.
mod manners;

/// Everything but liveness, with script switched off.
mod without_script;

/// Names that try to be more than text.
mod names;

/// What axe-core finds.
mod accessible;
