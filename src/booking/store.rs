//! The write of a booking: the seat's new state under the section's protection, and the record of the sale.

use uuid::Uuid;

use super::{Booking, BookingRecord, Order, Seat};
use crate::database::fence::{self, Change, WriteError};
use crate::database::{DatabaseError, Session, Transaction, Value, sql};
use crate::section::{Attempt, Protection, Section};

/// Marks the seat as sold and records the booking.
///
/// The record is inserted after the row was updated, so that its number follows the order of the commits.
pub(super) async fn sell(
    transaction: &mut Transaction,
    section: &Section<'_>,
    protection: &Protection,
    attempt: &Attempt,
    order: &Order,
) -> Result<Booking, WriteError> {
    let row = Seat::row(order.seat.as_str());
    let room = section.room();
    let condition = protection.condition(&row);
    let booking = Booking {
        id: Uuid::new_v4(),
        attempt: attempt.id,
        seat: order.seat.to_string(),
        buyer: order.buyer.to_string(),
        replica: attempt.replica().to_owned(),
        lock: room
            .switches
            .locking
            .then(|| room.switches.lock.to_string()),
        epoch: room.epoch,
        token: condition.stamp.token,
    };
    let change = Change {
        set: "state = 'sold', buyer = $6",
        values: vec![
            Value::from(booking.buyer.as_str()),
            Value::from(booking.id),
            Value::from(booking.attempt),
            Value::from(booking.replica.as_str()),
            Value::from(booking.lock.as_deref()),
            Value::from(booking.token),
            Value::from(section.version(&row)),
        ],
    };
    // $1 to $3 are the room, the seat and the epoch.
    let record = "INSERT INTO booking (
                      booking_id, room_id, attempt, replica, lock_system, epoch,
                      seat, buyer, token, version_read, version_written
                  )
                  SELECT $7, $1, $8, $9, $10, $3, $2, $6, $11, $12, version
                  FROM written";
    fence::write_and_record(transaction, room.id, &row, &condition, change, record).await?;
    Ok(booking)
}

/// The bookings of a room whose number is above `after`, at most `limit` of them, in the order of their numbers.
///
/// # Errors
/// When the database fails.
pub async fn records(
    session: &mut Session,
    room_id: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<BookingRecord>, DatabaseError> {
    let text = "SELECT seq, booking_id, attempt, replica, lock_system, epoch, seat, buyer, token,
                       version_read, version_written
                FROM booking
                WHERE room_id = $1
                  AND seq > $2
                ORDER BY seq
                LIMIT $3";
    let select = sql(text).bind(room_id).bind(after).bind(limit);
    let rows = session.all(select).await?;
    rows.iter()
        .map(|row| {
            Ok(BookingRecord {
                seq: row.int("seq")?,
                id: row.uuid("booking_id")?,
                attempt: row.uuid("attempt")?,
                seat: row.text("seat")?,
                buyer: row.text("buyer")?,
                replica: row.text("replica")?,
                lock: row.maybe_text("lock_system")?,
                epoch: row.int("epoch")?,
                token: row.maybe_int("token")?,
                version_read: row.int("version_read")?,
                version_written: row.int("version_written")?,
            })
        })
        .collect()
}
