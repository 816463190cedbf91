//! A room as it is shown: to the API and to the page alike.

use serde::Serialize;
use utoipa::ToSchema;

use super::Switches;
use crate::audit::Audit;
use crate::wallet::Money;

/// The whole room.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownRoom {
    /// Its name.
    pub room: String,
    /// Its epoch.
    pub epoch: i64,
    /// Its switches.
    pub switches: Switches,
    /// All seats, row by row.
    pub seats: Vec<ShownSeat>,
    /// All wallets, in the order in which they were made.
    pub wallets: Vec<ShownWallet>,
    /// What the database says about the invariants.
    pub audit: Audit,
}

/// A seat.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownSeat {
    /// Its name, as `A1`.
    pub seat: String,
    /// `free` or `sold`.
    pub state: String,
    /// The last buyer.
    #[schema(required)]
    pub buyer: Option<String>,
    /// Its row, from 0.
    #[serde(skip)]
    pub row: i64,
}

/// A wallet.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownWallet {
    /// Whose it is.
    pub wallet: String,
    /// What it holds.
    pub balance: Money,
}
