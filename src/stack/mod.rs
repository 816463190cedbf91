//! Real servers, started and ended with the program that asked for them.
//!
//! Every process started here runs under a guard (`child`): it ends with its owner, even when the owner is killed.
//! Every server listens on a free loopback port, keeps its data in the folder it was given, and answers before `start`
//! returns. Nothing here knows seats, rooms or HTTP.
//!
//! The servers are private to one run. They are not tuned, and nobody else should be given their addresses.

pub mod child;

pub mod found;

pub mod port;

pub mod postgres;

pub mod ready;

pub mod server;

pub mod redis;

pub mod redlock;

pub mod etcd;

pub mod zookeeper;

pub mod dynamodb;

pub use child::Launcher;
pub use dynamodb::DynamoDbServer;
pub use etcd::EtcdServer;
pub use postgres::PostgresServer;
pub use redis::RedisServer;
pub use server::{Kind, Server};
pub use zookeeper::ZooKeeperServer;
