//! Moving money: what money and a wallet are, the rule, the use case, its store.

mod error;
mod money;
mod record;
mod store;
mod transfer;

pub use error::TransferError;
pub use money::{Money, NotMoney};
pub use record::TransferRecord;
pub use store::records;
pub use transfer::{Order, Transfer, transfer};
