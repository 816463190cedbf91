//! What the database says about the invariants.

use serde::Deserialize;
use serde_json::Value;

/// The audit of a room.
#[derive(Debug, Deserialize)]
pub struct Audit {
    pub clean: bool,
    pub sentence: String,
    pub attempts: u64,
    pub seats_sold_twice: Vec<SoldTwice>,
    pub money: Money,
    pub wallets: Vec<Wallet>,
    pub negative_wallets: Vec<Value>,
    pub token_disorder: Vec<Value>,
    pub leases_left: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct SoldTwice {
    pub seat: String,
    pub bookings: Vec<Booking>,
}

#[derive(Debug, Deserialize)]
pub struct Booking {
    pub buyer: String,
    pub replica: String,
}

#[derive(Debug, Deserialize)]
pub struct Money {
    pub difference: String,
}

#[derive(Debug, Deserialize)]
pub struct Wallet {
    pub wallet: String,
    pub balance: String,
    pub expected: String,
}

impl Audit {
    /// Fails unless nothing is wrong after exactly so many bookings and transfers.
    #[track_caller]
    pub fn is_clean_after(&self, attempts: u64) -> &Self {
        assert!(self.clean, "{self:?}");
        assert_eq!(self.attempts, attempts, "{self:?}");
        assert!(self.seats_sold_twice.is_empty(), "{self:?}");
        assert!(self.wallets.is_empty(), "{self:?}");
        assert!(self.negative_wallets.is_empty(), "{self:?}");
        assert!(self.token_disorder.is_empty(), "{self:?}");
        assert_eq!(self.money.difference, "0.00", "{self:?}");
        self
    }

    /// Fails unless exactly this seat was sold twice, to these two buyers, each on a replica of its own.
    #[track_caller]
    pub fn sold_twice(&self, seat: &str, buyers: &[&str; 2]) -> &Self {
        assert!(!self.clean, "{self:?}");
        let [sold] = &self.seats_sold_twice[..] else {
            panic!("one seat sold twice: {self:?}")
        };
        assert_eq!(sold.seat, seat, "{self:?}");
        let sorted = |of: fn(&Booking) -> &str| {
            let mut names: Vec<&str> = sold.bookings.iter().map(of).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(|booking| &booking.buyer), buyers, "{self:?}");
        assert_eq!(sorted(|booking| &booking.replica), ["A", "B"], "{self:?}");
        assert!(
            self.sentence.contains("sold twice"),
            "the sentence says it: {self:?}"
        );
        self
    }

    /// Fails unless this wallet, and no other, holds `balance` where it should hold `expected`.
    #[track_caller]
    pub fn only_wrong(&self, wallet: &str, balance: &str, expected: &str) -> &Self {
        assert!(!self.clean, "{self:?}");
        let [wrong] = &self.wallets[..] else {
            panic!("one wrong wallet: {self:?}")
        };
        assert_eq!(
            (&*wrong.wallet, &*wrong.balance, &*wrong.expected),
            (wallet, balance, expected),
            "{self:?}"
        );
        self
    }
}
