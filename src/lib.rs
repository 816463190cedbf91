//! doublebook: what really protects a seat when two servers sell it at once?
//!
//! The modules stand in the order in which a request meets them; `docs/architecture.md` walks the same way.

// What the binary can be told to do: run everything, one replica, a guard; or look around.
pub mod commands;

// What a request may reach: database, locks, journal, the other replicas, and who I am.
pub mod app;

// HTTP: parse, call one use case, answer. The one place that knows status codes.
mod http;

// Booking a seat, from the order to the commit.
pub mod booking;

// Moving money, from the order to the commit.
pub mod wallet;

// The critical section: from a room's switches to held locks and back.
pub mod section;

// Distributed locks as a library: it knows nothing of seats, rooms or HTTP.
pub mod lock;

// Rooms, their switches and their epochs.
pub mod room;

// PostgreSQL and SQLite behind one face, and the SQL of the fence.
pub mod database;

// What each attempt did, step by step.
pub mod journal;

// What is counted and measured.
pub mod metrics;

// The other replicas.
pub mod peers;

// A room as it happens: steps of all replicas and changes, in one stream.
pub mod live;

// What the database says about the invariants.
pub mod audit;

// Real requests, sent so that they meet.
pub mod race;

// The load generator: how fast, and how right.
pub mod load;

// The names that people give.
pub mod name;

// Bad input: which field, and what it should have been.
pub mod invalid;

// Real servers, started for `up` and for the tests.
pub mod stack;
