//! The lock systems, one file or folder each. None knows another, and all wait, renew and fail through the layers
//! above them.

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
#[cfg(feature = "etcd")]
pub mod etcd;

pub mod mutex;

pub mod redis;

pub mod redlock;

pub mod table;

#[cfg(feature = "zookeeper")]
pub mod zookeeper;

#[cfg(feature = "dynamodb")]
pub use dynamodb::DynamoDb;
#[cfg(feature = "etcd")]
pub use etcd::Etcd;
pub use mutex::Mutex;
pub use redis::Redis;
pub use redlock::Redlock;
pub use table::{Table, TableDatabase};
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZooKeeper;
