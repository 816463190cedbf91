//! The lock systems, one file or folder each. None knows another, and all wait, renew and fail through the layers
//! above them.

pub mod mutex;

pub mod redis;

pub mod table;

#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use mutex::Mutex;
pub use redis::Redis;
pub use table::{Table, TablePool};
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZooKeeper;
