//! The lock systems, one file or folder each. None knows another, and all wait, renew and fail through the layers
//! above them.

pub mod mutex;

pub mod redis;

pub mod redlock;

pub mod table;

pub use mutex::Mutex;
pub use redis::Redis;
pub use redlock::Redlock;
pub use table::{Table, TablePool};
