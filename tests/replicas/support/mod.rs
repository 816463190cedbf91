//! The harness: real servers, pairs of replicas, and helpers that speak the words of the domain.

mod answer;
mod attempt;
mod audit;
mod deadline;
#[allow(dead_code, reason = "most of its faults are for lock systems")]
#[path = "../../lock_contract/forwarder.rs"]
mod forwarder;
mod keeper;
mod lock_server;
mod ports;
mod process;
mod room;
mod servers;
mod up;
mod world;

#[macro_use]
mod scenarios;

pub use answer::Answer;
pub use attempt::{Attempt, Underway};
pub use deadline::{PATIENCE, eventually, promised, soak};
pub use ports::free_ports;
pub use process::{PROGRAM, Process};
pub use room::Room;
pub use servers::{Folder as Scratch, shared_postgres_database};
pub use up::Up;
pub use world::{
    Database,
    Replica::{self, A, B},
    World, client,
};
