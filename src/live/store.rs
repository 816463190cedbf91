//! What the stream reads of a room: whether anything changed, and which seats are not free.

use super::view::LiveSeat;
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

/// The seats that are not free, row by row, each with its bookings in their order.
pub(super) async fn seats(
    session: &mut Session,
    room_id: i64,
) -> Result<Vec<LiveSeat>, DatabaseError> {
    let text = "SELECT seat.name, seat.state, sale.buyer, sale.of_all
                FROM seat
                LEFT JOIN (
                    SELECT seat, buyer, seq,
                           ROW_NUMBER() OVER (PARTITION BY seat ORDER BY seq) AS nth,
                           COUNT(*) OVER (PARTITION BY seat) AS of_all
                    FROM booking
                    WHERE room_id = $1
                ) AS sale ON sale.seat = seat.name AND sale.nth <= $2
                WHERE seat.room_id = $1
                  AND seat.state <> 'free'
                ORDER BY seat.row_number, seat.column_number, sale.seq";
    let mut seats: Vec<LiveSeat> = Vec::new();
    for row in session
        .all(sql(text).bind(room_id).bind(MOST_BUYERS))
        .await?
    {
        let seat = row.text("name")?;
        let buyer = row.maybe_text("buyer")?;
        if seats.last().is_none_or(|last| last.seat != seat) {
            let of_all = row.maybe_int("of_all")?.unwrap_or(0);
            seats.push(LiveSeat {
                seat,
                state: row.text("state")?,
                buyers: Vec::new(),
                more: of_all.saturating_sub(MOST_BUYERS).max(0),
            });
        }
        if let Some(last) = seats.last_mut() {
            last.buyers.extend(buyer);
        }
    }
    Ok(seats)
}
