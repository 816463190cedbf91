//! Why a seat was not booked.

use crate::database::DatabaseError;
use crate::section::SectionError;

/// Why a seat was not booked.
#[derive(Debug, thiserror::Error)]
pub enum BookingError {
    /// Somebody has it.
    #[error("seat {seat} is already booked by {buyer}")]
    SeatTaken {
        /// The seat.
        seat: String,
        /// Who has it.
        buyer: String,
    },
    /// The attempt could not go on.
    #[error(transparent)]
    Section(#[from] SectionError),
}

impl From<DatabaseError> for BookingError {
    fn from(error: DatabaseError) -> Self {
        Self::Section(error.into())
    }
}
