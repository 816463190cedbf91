//! PostgreSQL and SQLite behind one face: pools, sessions, transactions, and the SQL of the fence.
//!
//! Promises: every statement ends by a deadline; a transaction whose future is dropped never returns to a pool
//! while it is open; one SQL text serves both databases wherever they agree. Does not promise to hide what is
//! different about locking in the two: see [`Database::begin_rows`].
//!
//! It knows the names of the guarded tables and nothing of what is decided about them.

mod connect;
mod error;
pub mod fence;
mod pool;
mod session;
mod sql;

pub use connect::{Database, Dialect};
pub use error::DatabaseError;
pub use session::{CommitError, Session, Transaction};
pub use sql::{Row, Sql, Value, sql};

/// How long a request that is no attempt waits for the database.
pub const REQUEST_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
