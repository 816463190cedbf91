//! The rooms in the database.
//!
//! Whoever changes a room locks its row first and draws the epoch after, so a room's epoch never falls. Guarded
//! rows are taken in one order here too, or a reset could deadlock with the transfers it waits for.

use super::layout::row_label;
use super::{Layout, LockServer, Room, RoomName, ShownSeat, ShownWallet, Switches};
use crate::database::fence::RowId;
use crate::database::{DatabaseError, Dialect, Row, Session, Transaction, sql};
use crate::lock::LockName;
use crate::wallet::Money;

/// Loads a room and tells, in the same query, which of the rows exist that an attempt wants.
pub async fn load(
    session: &mut Session,
    name: &RoomName,
    rows: &[RowId],
) -> Result<Option<(Room, Vec<bool>)>, DatabaseError> {
    let exists: String = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            format!(
                ",
                EXISTS (SELECT 1 FROM {table} WHERE {table}.room_id = room.room_id AND {table}.name = ${parameter})
                  AS row_{index}",
                table = row.table.name(),
                parameter = index + 2,
            )
        })
        .collect();
    let text = format!(
        "SELECT room.room_id, room.epoch, room.switches, lock_server.server_id, lock_server.address{exists}
         FROM room
         LEFT JOIN lock_server ON lock_server.lock_system = room.lock_system
         WHERE room.name = $1"
    );
    let query = rows
        .iter()
        .fold(sql(text).bind(name.as_str()), |query, row| {
            query.bind(row.name.as_str())
        });
    let Some(found) = session.first(query).await? else {
        return Ok(None);
    };
    let there = (0..rows.len())
        .map(|index| found.bool(&format!("row_{index}")))
        .collect::<Result<_, _>>()?;
    Ok(Some((room(name, &found)?, there)))
}

fn room(name: &RoomName, row: &Row) -> Result<Room, DatabaseError> {
    let lock_server = match (row.maybe_text("server_id")?, row.maybe_text("address")?) {
        (Some(id), Some(address)) => Some(LockServer { id, address }),
        _ => None,
    };
    Ok(Room {
        id: row.int("room_id")?,
        name: name.clone(),
        epoch: row.int("epoch")?,
        switches: parse_switches(&row.text("switches")?)?,
        lock_server,
    })
}

/// The room's epoch as it is now, or none if the room is gone.
pub async fn epoch(session: &mut Session, room_id: i64) -> Result<Option<i64>, DatabaseError> {
    let text = "SELECT epoch
                FROM room
                WHERE room_id = $1";
    session
        .first(sql(text).bind(room_id))
        .await?
        .map(|row| row.int("epoch"))
        .transpose()
}

/// All rooms by name.
pub async fn names(session: &mut Session) -> Result<Vec<String>, DatabaseError> {
    let text = "SELECT name
                FROM room
                ORDER BY name";
    session
        .all(sql(text))
        .await?
        .iter()
        .map(|row| row.text("name"))
        .collect()
}

/// Makes a room if it is not there. What somebody else has made stays as it is.
pub async fn make(
    transaction: &mut Transaction,
    name: &RoomName,
    layout: &Layout,
    switches: &Switches,
) -> Result<(), DatabaseError> {
    if insert(transaction, name, switches).await? {
        lay_out(transaction, name, layout, switches).await?;
    }
    Ok(())
}

/// Makes a room, or lays it out anew with everything in it gone and all switches at their defaults.
/// Tells whether it is new.
pub async fn put(
    transaction: &mut Transaction,
    name: &RoomName,
    layout: &Layout,
    switches: &Switches,
) -> Result<bool, DatabaseError> {
    let is_new = insert(transaction, name, switches).await?;
    lay_out(transaction, name, layout, switches).await?;
    Ok(is_new)
}

async fn lay_out(
    transaction: &mut Transaction,
    name: &RoomName,
    layout: &Layout,
    switches: &Switches,
) -> Result<(), DatabaseError> {
    let Some((room_id, _)) = lock(transaction, name).await? else {
        return Err(DatabaseError::Busy("the room is being deleted".to_owned()));
    };
    take_all_rows(transaction, room_id).await?;
    let version = highest_version(transaction, room_id).await? + 1;
    clear(transaction, room_id).await?;
    let epoch = next_epoch(transaction).await?;
    let begins = RowsBegin {
        epoch,
        version: epoch.max(version),
    };
    let text = "UPDATE room
                SET epoch = $2, seat_rows = $3, seat_columns = $4
                WHERE room_id = $1";
    let update = sql(text)
        .bind(room_id)
        .bind(epoch)
        .bind(i64::from(layout.rows))
        .bind(i64::from(layout.columns));
    transaction.execute(update).await?;
    store_switches(transaction, room_id, switches).await?;
    insert_seats(transaction, room_id, begins, layout).await?;
    insert_wallets(transaction, room_id, begins, layout).await
}

/// Where the rows of a room that is laid out begin.
#[derive(Debug, Clone, Copy)]
struct RowsBegin {
    epoch: i64,
    /// Above all that the room's rows have had: a row laid out anew is never at a version that somebody has read.
    version: i64,
}

async fn highest_version(
    transaction: &mut Transaction,
    room_id: i64,
) -> Result<i64, DatabaseError> {
    let text = "SELECT COALESCE(MAX(version), 0) AS version
                FROM (
                    SELECT version FROM seat WHERE room_id = $1
                    UNION ALL
                    SELECT version FROM wallet WHERE room_id = $1
                ) AS versions";
    transaction
        .one(sql(text).bind(room_id))
        .await?
        .int("version")
}

async fn insert(
    transaction: &mut Transaction,
    name: &RoomName,
    switches: &Switches,
) -> Result<bool, DatabaseError> {
    let text = "INSERT INTO room (name, epoch, seat_rows, seat_columns, switches, lock_system)
                VALUES ($1, 0, 0, 0, $2, $3)
                ON CONFLICT (name) DO NOTHING";
    let insert = sql(text)
        .bind(name.as_str())
        .bind(to_json(switches)?)
        .bind(switches.lock.as_str());
    Ok(transaction.execute(insert).await? == 1)
}

async fn insert_seats(
    transaction: &mut Transaction,
    room_id: i64,
    begins: RowsBegin,
    layout: &Layout,
) -> Result<(), DatabaseError> {
    let text = "WITH RECURSIVE numbers (n) AS (
                    SELECT 1
                    UNION ALL
                    SELECT n + 1 FROM numbers WHERE n < $6
                )
                INSERT INTO seat (room_id, name, row_number, column_number, version, fence_epoch)
                SELECT $1, $2 || n, $3, n, $4, $5
                FROM numbers";
    for row in 0..layout.rows {
        let insert = sql(text)
            .bind(room_id)
            .bind(row_label(row))
            .bind(i64::from(row))
            .bind(begins.version)
            .bind(begins.epoch)
            .bind(i64::from(layout.columns));
        transaction.execute(insert).await?;
    }
    Ok(())
}

async fn insert_wallets(
    transaction: &mut Transaction,
    room_id: i64,
    begins: RowsBegin,
    layout: &Layout,
) -> Result<(), DatabaseError> {
    let text =
        "INSERT INTO wallet (room_id, name, position, opening, balance, version, fence_epoch)
                VALUES ($1, $2, $3, $4, $4, $5, $6)";
    for (position, wallet) in (0i64..).zip(&layout.wallets) {
        let insert = sql(text)
            .bind(room_id)
            .bind(wallet.name.as_str())
            .bind(position)
            .bind(wallet.balance.decimal())
            .bind(begins.version)
            .bind(begins.epoch);
        transaction.execute(insert).await?;
    }
    Ok(())
}

/// Changes the switches; a real change raises the epoch. Tells whether the room exists.
pub async fn change_switches(
    transaction: &mut Transaction,
    name: &RoomName,
    change: impl FnOnce(&Switches) -> Switches,
) -> Result<bool, DatabaseError> {
    let Some((room_id, before)) = lock(transaction, name).await? else {
        return Ok(false);
    };
    let after = change(&before);
    if after == before {
        return Ok(true);
    }
    raise_epoch(transaction, room_id).await?;
    store_switches(transaction, room_id, &after).await?;
    Ok(true)
}

/// Frees all seats, fills all wallets as they were opened, forgets all attempts. Tells whether the room exists.
pub async fn reset(transaction: &mut Transaction, name: &RoomName) -> Result<bool, DatabaseError> {
    let Some((room_id, _)) = lock(transaction, name).await? else {
        return Ok(false);
    };
    take_all_rows(transaction, room_id).await?;
    let epoch = raise_epoch(transaction, room_id).await?;
    let seats = "UPDATE seat
                 SET state = 'free', buyer = NULL, version = version + 1, fence_epoch = $2, fence = 0
                 WHERE room_id = $1";
    transaction
        .execute(sql(seats).bind(room_id).bind(epoch))
        .await?;
    let wallets = "UPDATE wallet
                   SET balance = opening, version = version + 1, fence_epoch = $2, fence = 0
                   WHERE room_id = $1";
    transaction
        .execute(sql(wallets).bind(room_id).bind(epoch))
        .await?;
    forget_attempts(transaction, room_id).await?;
    Ok(true)
}

/// Deletes a room with all that belongs to it. Tells whether it was there.
pub async fn delete(transaction: &mut Transaction, name: &RoomName) -> Result<bool, DatabaseError> {
    let Some((room_id, _)) = lock(transaction, name).await? else {
        return Ok(false);
    };
    clear(transaction, room_id).await?;
    let text = "DELETE FROM room
                WHERE room_id = $1";
    transaction.execute(sql(text).bind(room_id)).await?;
    Ok(true)
}

/// Raises the epoch if nobody has done so since: what heals a room whose lock server lost its counter.
pub async fn raise_epoch_from(
    transaction: &mut Transaction,
    name: &RoomName,
    seen: i64,
) -> Result<(), DatabaseError> {
    let Some((room_id, _)) = lock(transaction, name).await? else {
        return Ok(());
    };
    if epoch(transaction, room_id).await? == Some(seen) {
        raise_epoch(transaction, room_id).await?;
    }
    Ok(())
}

/// Raises the epoch of every room: the private lock servers of a new run begin their counters anew.
pub async fn raise_all_epochs(transaction: &mut Transaction) -> Result<(), DatabaseError> {
    // All rooms before the counter, as everybody else takes them one by one.
    let mut rooms = Vec::new();
    for name in names(transaction).await? {
        let Ok(name) = name.parse() else { continue };
        rooms.extend(lock(transaction, &name).await?);
    }
    for (room_id, _) in rooms {
        raise_epoch(transaction, room_id).await?;
    }
    Ok(())
}

/// All seats of a room, row by row.
pub async fn seats(session: &mut Session, room_id: i64) -> Result<Vec<ShownSeat>, DatabaseError> {
    let text = "SELECT name, state, buyer, row_number
                FROM seat
                WHERE room_id = $1
                ORDER BY row_number, column_number";
    let rows = session.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| {
            Ok(ShownSeat {
                seat: row.text("name")?,
                state: row.text("state")?,
                buyer: row.maybe_text("buyer")?,
                row: row.int("row_number")?,
            })
        })
        .collect()
}

/// The names of the first seats of a room, row by row.
pub async fn first_seats(
    session: &mut Session,
    room_id: i64,
    limit: usize,
) -> Result<Vec<String>, DatabaseError> {
    let text = "SELECT name
                FROM seat
                WHERE room_id = $1
                ORDER BY row_number, column_number
                LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    session
        .all(sql(text).bind(room_id).bind(limit))
        .await?
        .iter()
        .map(|row| row.text("name"))
        .collect()
}

/// The wallets of a room with what they were opened with.
pub async fn openings(
    session: &mut Session,
    room_id: i64,
) -> Result<Vec<(String, Money)>, DatabaseError> {
    let text = "SELECT name, opening
                FROM wallet
                WHERE room_id = $1";
    let rows = session.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.money("opening")?.into())))
        .collect()
}

/// All wallets of a room, in the order in which they were made.
pub async fn wallets(
    session: &mut Session,
    room_id: i64,
) -> Result<Vec<ShownWallet>, DatabaseError> {
    let text = "SELECT name, balance
                FROM wallet
                WHERE room_id = $1
                ORDER BY position";
    let rows = session.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| {
            Ok(ShownWallet {
                wallet: row.text("name")?,
                balance: Money::from(row.money("balance")?),
            })
        })
        .collect()
}

/// Stores the id of a lock server, so that every replica can compare its own with it. If the database knew another
/// one, attempts may be under way under its locks: all epochs are raised, and what they write then is refused.
pub async fn store_lock_server(
    transaction: &mut Transaction,
    lock: LockName,
    server: &LockServer,
) -> Result<(), DatabaseError> {
    let first = "INSERT INTO lock_server (lock_system, server_id, address)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (lock_system) DO NOTHING";
    let values = |text: &str| {
        sql(text)
            .bind(lock.as_str())
            .bind(server.id.as_str())
            .bind(server.address.as_str())
    };
    if transaction.execute(values(first)).await? == 1 {
        return Ok(());
    }
    let other = "UPDATE lock_server
                 SET server_id = $2, address = $3
                 WHERE lock_system = $1
                   AND server_id <> $2";
    if transaction.execute(values(other)).await? == 1 {
        raise_all_epochs(transaction).await?;
    }
    Ok(())
}

/// Forgets all lock servers: those of an earlier run are gone.
pub async fn forget_lock_servers(transaction: &mut Transaction) -> Result<(), DatabaseError> {
    transaction
        .execute(sql("DELETE FROM lock_server"))
        .await
        .map(drop)
}

/// The lock server that the database knows.
pub async fn lock_server(
    session: &mut Session,
    lock: LockName,
) -> Result<Option<LockServer>, DatabaseError> {
    let text = "SELECT server_id, address
                FROM lock_server
                WHERE lock_system = $1";
    let Some(row) = session.first(sql(text).bind(lock.as_str())).await? else {
        return Ok(None);
    };
    Ok(Some(LockServer {
        id: row.text("server_id")?,
        address: row.text("address")?,
    }))
}

/// Locks the room's row until the transaction ends; on SQLite the transaction holds the whole file already.
async fn lock(
    transaction: &mut Transaction,
    name: &RoomName,
) -> Result<Option<(i64, Switches)>, DatabaseError> {
    let for_update = match transaction.dialect() {
        Dialect::Postgres => "FOR UPDATE",
        Dialect::Sqlite => "",
    };
    let text = format!(
        "SELECT room_id, switches
         FROM room
         WHERE name = $1
         {for_update}"
    );
    let Some(row) = transaction.first(sql(text).bind(name.as_str())).await? else {
        return Ok(None);
    };
    Ok(Some((
        row.int("room_id")?,
        parse_switches(&row.text("switches")?)?,
    )))
}

async fn next_epoch(transaction: &mut Transaction) -> Result<i64, DatabaseError> {
    let text = "UPDATE counter
                SET value = value + 1
                WHERE name = 'epoch'
                RETURNING value";
    transaction.one(sql(text)).await?.int("value")
}

async fn raise_epoch(transaction: &mut Transaction, room_id: i64) -> Result<i64, DatabaseError> {
    let epoch = next_epoch(transaction).await?;
    let text = "UPDATE room
                SET epoch = $2
                WHERE room_id = $1";
    transaction
        .execute(sql(text).bind(room_id).bind(epoch))
        .await?;
    Ok(epoch)
}

async fn store_switches(
    transaction: &mut Transaction,
    room_id: i64,
    switches: &Switches,
) -> Result<(), DatabaseError> {
    let text = "UPDATE room
                SET switches = $2, lock_system = $3
                WHERE room_id = $1";
    let update = sql(text)
        .bind(room_id)
        .bind(to_json(switches)?)
        .bind(switches.lock.as_str());
    transaction.execute(update).await.map(drop)
}

/// Waits for the attempts that are writing, in the order in which attempts take rows.
async fn take_all_rows(transaction: &mut Transaction, room_id: i64) -> Result<(), DatabaseError> {
    if transaction.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    for table in ["seat", "wallet"] {
        let text = format!(
            "SELECT name
             FROM {table}
             WHERE room_id = $1
             ORDER BY name COLLATE \"C\"
             FOR UPDATE"
        );
        transaction.execute(sql(text).bind(room_id)).await?;
    }
    Ok(())
}

/// Rows first: an attempt that was about to commit has done so when its rows are gone, and then its record is seen.
async fn clear(transaction: &mut Transaction, room_id: i64) -> Result<(), DatabaseError> {
    take_all_rows(transaction, room_id).await?;
    for table in ["seat", "wallet"] {
        delete_from(transaction, table, room_id).await?;
    }
    forget_attempts(transaction, room_id).await
}

async fn forget_attempts(transaction: &mut Transaction, room_id: i64) -> Result<(), DatabaseError> {
    for table in ["booking", "transfer", "race"] {
        delete_from(transaction, table, room_id).await?;
    }
    Ok(())
}

async fn delete_from(
    transaction: &mut Transaction,
    table: &'static str,
    room_id: i64,
) -> Result<(), DatabaseError> {
    let text = format!(
        "DELETE FROM {table}
         WHERE room_id = $1"
    );
    transaction.execute(sql(text).bind(room_id)).await.map(drop)
}

fn parse_switches(json: &str) -> Result<Switches, DatabaseError> {
    serde_json::from_str(json)
        .map_err(|error| DatabaseError::Broken(format!("the switches of a room: {error}")))
}

fn to_json(switches: &Switches) -> Result<String, DatabaseError> {
    serde_json::to_string(switches)
        .map_err(|error| DatabaseError::Broken(format!("the switches of a room: {error}")))
}
