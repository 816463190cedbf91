//! A seat as it was read, and the one rule about it.

use super::BookingError;
use crate::database::fence::{RowId, Table};
use crate::database::{DatabaseError, Row};

/// A seat as it was read.
#[derive(Debug, Clone)]
pub struct Seat {
    /// Which row it is.
    pub id: RowId,
    /// Who has it, if it is sold.
    pub buyer: Option<String>,
}

/// The state of a seat that can be sold.
const FREE: &str = "free";

impl Seat {
    /// The row of a seat.
    pub fn row(name: &str) -> RowId {
        RowId {
            table: Table::Seat,
            name: name.to_owned(),
        }
    }

    pub(super) fn from_row(name: &str, row: &Row) -> Result<Self, DatabaseError> {
        let state = row.text("state")?;
        let buyer = row.maybe_text("buyer")?;
        Ok(Self {
            id: Self::row(name),
            buyer: if state == FREE {
                None
            } else {
                Some(buyer.unwrap_or(state))
            },
        })
    }

    /// The rule: only a free seat is sold.
    pub(super) fn must_be_free(&self) -> Result<(), BookingError> {
        match &self.buyer {
            None => Ok(()),
            Some(buyer) => Err(BookingError::SeatTaken {
                seat: self.id.name.clone(),
                buyer: buyer.clone(),
            }),
        }
    }
}
