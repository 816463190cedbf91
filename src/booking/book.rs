//! Booking a seat, from the order to the commit. Read it from top to bottom.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{BookingError, Seat, store};
use crate::journal::StepKind;
use crate::name::Name;
use crate::section::{Attempt, Section, SectionError};

/// Who wants which seat.
#[derive(Debug, Clone)]
pub struct Order {
    /// The seat.
    pub seat: Name,
    /// The buyer.
    pub buyer: Name,
}

/// A seat that was sold.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Booking {
    /// The booking's own id.
    pub id: Uuid,
    /// The attempt that made it.
    pub attempt: Uuid,
    /// The seat.
    pub seat: String,
    /// The buyer.
    pub buyer: String,
    /// The replica that sold it.
    pub replica: String,
    /// The lock system that was asked, if locking was on.
    #[schema(required)]
    pub lock: Option<String>,
    /// The room's epoch.
    pub epoch: i64,
    /// The fencing token, if the lock system has them.
    #[schema(required)]
    pub token: Option<i64>,
}

/// Books a seat, beginning anew when the room's switches changed on the way.
///
/// # Errors
/// Why it was not booked; only [`SectionError::OutcomeUnknown`] leaves that open.
pub async fn book(attempt: &Attempt, order: &Order) -> Result<Booking, BookingError> {
    loop {
        match walk(attempt, order).await {
            Err(BookingError::Section(error)) => attempt.begins_anew(error).await?,
            settled => return settled,
        }
    }
}

async fn walk(attempt: &Attempt, order: &Order) -> Result<Booking, BookingError> {
    let mut section = Section::enter(attempt, vec![Seat::row(order.seat.as_str())]).await?;

    let rows = section.read().await?;
    let row = rows
        .first()
        .ok_or_else(|| SectionError::Internal("no seat was read".to_owned()))?;
    let seat = Seat::from_row(order.seat.as_str(), row)?;
    section.think().await;
    if let Err(taken) = seat.must_be_free() {
        attempt.tell(
            StepKind::Rejected,
            Some(seat.id.to_string()),
            None,
            taken.to_string(),
        );
        return Err(taken);
    }

    // A pause may strike after this last look at the lease, and then only the protection helps.
    let protection = section.last_look()?;
    let mut transaction = section.begin_write().await?;
    let sold = store::sell(&mut transaction, &section, &protection, attempt, order).await;
    let booking = section.commit(transaction, sold).await?;

    // Only after the commit: a lock freed earlier would let another replica read the seat as it was.
    section.leave();
    Ok(booking)
}
