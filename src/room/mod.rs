//! A room is a sandbox: its seats, its wallets, and the switches that say how attempts in it are protected.
//!
//! The switches stand in the room's row, so every replica obeys them from the next attempt on. Each change that
//! could make an attempt under way unsafe raises the room's **epoch**, a number that never falls, also when a room
//! is deleted and made again.

mod change;
mod layout;
mod name;
mod shown;
pub mod store;
mod switches;

pub use change::{Change, Changed, change};
pub use layout::{Layout, LayoutWish, OpeningWallet};
pub use name::{MAIN, NotARoomName, RoomName};
pub use shown::{ShownRoom, ShownSeat, ShownWallet};
pub use switches::{
    Fencing, Order, Release, Switches, SwitchesPatch, THINK_MS, TTL_MS, WAIT_MS, Waiting,
};

/// A room as an attempt needs it: loaded in one query, before any lock.
#[derive(Debug, Clone)]
pub struct Room {
    /// Its number in the database; a room made anew under the same name has another.
    pub id: i64,
    /// Its name.
    pub name: RoomName,
    /// Its epoch when it was loaded.
    pub epoch: i64,
    /// Its switches.
    pub switches: Switches,
    /// The server that the database knows for the room's lock system, if it has one.
    pub lock_server: Option<LockServer>,
}

/// A lock server, as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockServer {
    /// The random id that the server holds.
    pub id: String,
    /// Where the replica that stored the id reached the server.
    pub address: String,
}
