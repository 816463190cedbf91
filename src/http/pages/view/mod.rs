//! What the page says, part by part: from the data of a room to words, without HTML and without a request.

mod attempt;
mod audit;
mod lock_table;
mod race;
mod seats;
mod summary;
mod switchboard;
mod switches;
mod wallets;
mod words;

pub use attempt::AttemptView;
pub use audit::AuditView;
pub use lock_table::{LockRow, lock_table};
pub use race::{LastRaceView, RaceButton, race_buttons};
pub use seats::{SeatMap, Sold};
pub use summary::Summary;
pub use switchboard::{Control, SwitchView, as_drawn, switchboard};
pub use switches::switch_value;
pub use wallets::WalletsView;
