//! What the stream reads of a room: whether anything changed, and which seats are not free.

use std::collections::HashMap;

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
///
/// Two questions in one snapshot and no join: of a room that was just filled PostgreSQL knows nothing yet, and would
/// look through all bookings for each seat.
pub(super) async fn seats(
    snapshot: &mut Session,
    room_id: i64,
) -> Result<Vec<LiveSeat>, DatabaseError> {
    let mut sales = sales(snapshot, room_id).await?;
    let text = "SELECT name, state
                FROM seat
                WHERE room_id = $1
                  AND state <> 'free'
                ORDER BY row_number, column_number";
    let rows = snapshot.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| {
            let seat = row.text("name")?;
            let sold = sales.remove(&seat).unwrap_or_default();
            Ok(LiveSeat {
                state: row.text("state")?,
                more: sold.of_all.saturating_sub(MOST_BUYERS).max(0),
                buyers: sold.buyers,
                seat,
            })
        })
        .collect()
}

/// The bookings of one seat.
#[derive(Debug, Default)]
struct Sales {
    /// The first of its buyers.
    buyers: Vec<String>,
    of_all: i64,
}

async fn sales(
    snapshot: &mut Session,
    room_id: i64,
) -> Result<HashMap<String, Sales>, DatabaseError> {
    let text = "WITH sale AS (
                    SELECT seat, buyer,
                           ROW_NUMBER() OVER (PARTITION BY seat ORDER BY seq) AS nth,
                           COUNT(*) OVER (PARTITION BY seat) AS of_all
                    FROM booking
                    WHERE room_id = $1
                )
                SELECT seat, buyer, of_all
                FROM sale
                WHERE nth <= $2
                ORDER BY seat, nth";
    let rows = snapshot.all(sql(text).bind(room_id).bind(MOST_BUYERS));
    let mut sales: HashMap<String, Sales> = HashMap::new();
    for row in rows.await? {
        let of_seat = sales.entry(row.text("seat")?).or_default();
        of_seat.of_all = row.int("of_all")?;
        of_seat.buyers.push(row.text("buyer")?);
    }
    Ok(sales)
}
