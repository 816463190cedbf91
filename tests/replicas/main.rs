//! Two replicas of the real program, on SQLite and on PostgreSQL, asked over HTTP only.
//!
//! Every protection stands beside its negative control: the same steps with the protection off must show the race, or
//! the green test would mean nothing. Gates make both sides certain; what happens by timing alone is only counted.
//! No test waits by sleeping: it polls for a condition with a deadline (`support::eventually`). Times that the program
//! promises for a quiet machine are printed beside what was measured, and waited for three to ten times as long.
//!
//! A scenario is an async function of a [`Database`](support::Database), and often of a lock system; the macros of
//! `support` make one test of each pair, as in `one_seat::is_sold_once_under::redis::on_sqlite`.

#[macro_use]
mod support;

/// What every answer looks like: shapes, problem documents, `attempt`, `Server-Timing`.
mod contract;

/// The API's own description, example by example.
mod described;

/// What Prometheus reads.
mod metrics;

/// Nothing that is badly asked takes a lock, changes a room or breaks a replica.
mod bad_input;

/// Foreign pages cannot change anything.
mod foreign;

/// Pauses and gates, and a replica that refuses them.
mod failpoints;

/// The page without script.
mod page;

/// The page is small, and soon there.
mod light;

/// Two buyers and one seat.
mod one_seat;

/// Two transfers from one wallet.
mod lost_update;

/// Two transfers in opposite directions.
mod crossing;

/// Fifty buyers and ten seats.
mod crowd;

/// A lock that ends at the border of a process.
mod mutex;

/// A holder that sleeps beyond its lease and writes late.
mod paused_holder;

/// A holder whose whole process stands still, and writes late.
mod stopped_holder;

/// Locking is switched on while an attempt is under way.
mod switched_on;

/// The last guard: write only what is still as it was read.
mod compare;

/// Leases that lapse, and who may release them.
mod lease;

/// Wall clocks that are wrong, and that jump.
mod clocks;

/// A commit that takes long.
mod slow_commit;

/// The races as one request.
mod races;

/// Clients that do not wait for their answer.
mod hang_up;

/// Replicas that are killed.
mod killed;

/// Replicas that are asked to stop.
mod stopped;

/// The database or Redis goes away and comes back.
mod outage;

/// The cable between a replica and its database hangs, or loses an answer.
mod cable;

/// Resets, new rooms, restarts and lost counters leave nobody locked out.
mod locked_out;

/// How a replica starts, and how small it stays.
mod start;

/// What the log says of an attempt.
mod log;
