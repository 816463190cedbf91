//! What the database says about the invariants, from one consistent snapshot.
//!
//! Promises: it accuses nobody wrongly, since all its numbers are of one moment. Does not promise safety: it can only
//! say that nothing was seen in the attempts that there were.

mod sentence;
mod store;

pub use store::audit;

use serde::Serialize;
use utoipa::ToSchema;

use crate::wallet::Money;

/// The state of the invariants of a room.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Audit {
    /// Whether no violation was seen.
    pub clean: bool,
    /// All of it in one plain sentence.
    pub sentence: String,
    /// Stored bookings and transfers.
    pub attempts: i64,
    /// Seats with more than one booking.
    pub seats_sold_twice: Vec<SoldTwice>,
    /// All money against what the wallets were opened with.
    pub money: MoneySum,
    /// Wallets that hold something else than their opening balance and transfers say.
    pub wallets: Vec<WalletOff>,
    /// Wallets below zero.
    pub negative_wallets: Vec<String>,
    /// Bookings whose (epoch, token) does not rise in the order of the commits of their seat.
    pub token_disorder: Vec<Disorder>,
    /// Leases of ended attempts that may still stand, over all replicas; none when a replica did not say.
    #[schema(required)]
    pub leases_left: Option<u64>,
}

/// A seat and all its bookings.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SoldTwice {
    /// The seat.
    pub seat: String,
    /// Its bookings, in the order of their commits.
    pub bookings: Vec<Sale>,
}

/// A booking of a seat that was sold more than once.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Sale {
    /// Who bought it.
    pub buyer: String,
    /// Which replica sold it.
    pub replica: String,
    /// The fencing token, if there was one.
    #[schema(required)]
    pub token: Option<i64>,
}

/// All money of a room.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MoneySum {
    /// What the wallets were opened with.
    pub opened: Money,
    /// What they hold now.
    pub now: Money,
    /// How much appeared from nowhere, or below zero, vanished.
    pub difference: Money,
}

/// A wallet that holds something else than it should.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WalletOff {
    /// Whose it is.
    pub wallet: String,
    /// What it holds.
    pub balance: Money,
    /// What it should hold.
    pub expected: Money,
}

/// A booking that came after one with a token that is not smaller.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Disorder {
    /// The seat.
    pub seat: String,
    /// Who bought it.
    pub buyer: String,
    /// The booking's epoch.
    pub epoch: i64,
    /// The booking's token.
    pub token: i64,
    /// The epoch of the booking before it.
    pub after_epoch: i64,
    /// The token of the booking before it.
    pub after_token: i64,
}
