//! The last race of each room in the database.

use super::LastRace;
use crate::database::{DatabaseError, Session, Transaction, sql};

/// Keeps a race as the room's last.
pub(super) async fn keep(
    transaction: &mut Transaction,
    room_id: i64,
    race: &LastRace,
) -> Result<(), DatabaseError> {
    let json =
        serde_json::to_string(race).map_err(|error| DatabaseError::Broken(error.to_string()))?;
    let text = "INSERT INTO race (room_id, result)
                VALUES ($1, $2)
                ON CONFLICT (room_id) DO UPDATE
                SET result = excluded.result";
    transaction
        .execute(sql(text).bind(room_id).bind(json))
        .await
        .map(drop)
}

/// The room's last race, if there was one since its last reset.
pub async fn last(session: &mut Session, room_id: i64) -> Result<Option<LastRace>, DatabaseError> {
    let text = "SELECT result
                FROM race
                WHERE room_id = $1";
    let Some(row) = session.first(sql(text).bind(room_id)).await? else {
        return Ok(None);
    };
    // A race that an older version kept in another form is as good as none.
    Ok(serde_json::from_str(&row.text("result")?).ok())
}
