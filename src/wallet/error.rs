//! Why money was not moved.

use super::Money;
use crate::database::DatabaseError;
use crate::section::SectionError;

/// Why money was not moved.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The giver has too little.
    #[error("{wallet} has {balance}, which is less than {amount}")]
    InsufficientFunds {
        /// The giver.
        wallet: String,
        /// What the giver has.
        balance: Money,
        /// What was to be moved.
        amount: Money,
    },
    /// The attempt could not go on.
    #[error(transparent)]
    Section(#[from] SectionError),
}

impl From<DatabaseError> for TransferError {
    fn from(error: DatabaseError) -> Self {
        Self::Section(error.into())
    }
}
