//! Moving money: what money and a wallet are, the rule, the use case, its store.

mod error;
mod money;
mod store;
mod transfer;

pub use error::TransferError;
pub use money::{Money, NotMoney};
pub use transfer::{Order, Transfer, transfer};
