//! What the stream reads of a room: whether anything changed, and which seats were booked.

use super::view::Seats;
use crate::database::{DatabaseError, Session, sql};
use crate::room::RoomName;

/// The buyers of one seat that are told. A seat that was sold more often is wrong enough.
const MOST_BUYERS: i64 = 20;

/// What is different once anything of a room has changed.
///
/// Every write of an attempt raises a version, and every other change the epoch. The highest `seq` of the bookings
/// would not do: a booking that drew a lower one may be committed after it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    room_id: i64,
    epoch: i64,
    seats: i64,
    wallets: i64,
}

impl Mark {
    /// How many bookings there were between an earlier mark and this one; none if there was more than bookings: a reset,
    /// or another room of that name. Each booking raises the version of its seat by one.
    pub(super) fn bookings_since(&self, earlier: &Self) -> Option<i64> {
        let same = (self.room_id, self.epoch) == (earlier.room_id, earlier.epoch);
        same.then(|| self.seats - earlier.seats)
    }
}

/// The mark of a room, or none if it is gone.
pub(super) async fn mark(
    session: &mut Session,
    room: &RoomName,
) -> Result<Option<Mark>, DatabaseError> {
    let text = "SELECT room.room_id, room.epoch,
                       (SELECT CAST(COALESCE(SUM(version), 0) AS BIGINT)
                        FROM seat
                        WHERE seat.room_id = room.room_id) AS seats,
                       (SELECT CAST(COALESCE(SUM(version), 0) AS BIGINT)
                        FROM wallet
                        WHERE wallet.room_id = room.room_id) AS wallets
                FROM room
                WHERE room.name = $1";
    let Some(row) = session.first(sql(text).bind(room.as_str())).await? else {
        return Ok(None);
    };
    Ok(Some(Mark {
        room_id: row.int("room_id")?,
        epoch: row.int("epoch")?,
        seats: row.int("seats")?,
        wallets: row.int("wallets")?,
    }))
}

/// How many rows and columns a room has.
pub(super) async fn extent(
    session: &mut Session,
    room_id: i64,
) -> Result<(i64, i64), DatabaseError> {
    let text = "SELECT seat_rows, seat_columns
                FROM room
                WHERE room_id = $1";
    let row = session.one(sql(text).bind(room_id)).await?;
    Ok((row.int("seat_rows")?, row.int("seat_columns")?))
}

/// The seats that were booked after the booking with the number `after`, each with all its bookings: after 0, all that
/// are not free, since only a booking takes a seat.
///
/// The database goes through all bookings of the room in one pass, however few are asked for. It must not join: of a
/// room that was just filled PostgreSQL knows nothing yet, and would ask the inner question anew for each seat.
pub(super) async fn seats(
    snapshot: &mut Session,
    room_id: i64,
    after: i64,
) -> Result<Seats, DatabaseError> {
    let text = "WITH sale AS (
                    SELECT seat, buyer,
                           ROW_NUMBER() OVER (PARTITION BY seat ORDER BY seq) AS nth,
                           COUNT(*) OVER (PARTITION BY seat) AS of_all,
                           MAX(seq) OVER (PARTITION BY seat) AS last
                    FROM booking
                    WHERE room_id = $1
                )
                SELECT seat, buyer, of_all, last
                FROM sale
                WHERE last > $2
                  AND nth <= $3
                ORDER BY seat, nth";
    let select = sql(text).bind(room_id).bind(after).bind(MOST_BUYERS);
    let mut seats = Seats::default();
    for row in snapshot.all(select).await? {
        seats.last_booking = seats.last_booking.max(row.int("last")?);
        let more = (row.int("of_all")? - MOST_BUYERS).max(0);
        seats.sell(row.text("seat")?, row.text("buyer")?, more);
    }
    Ok(seats)
}
