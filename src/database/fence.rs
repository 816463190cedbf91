//! The SQL of the guards: how a guarded row is read, claimed, locked and written, and why a write was refused.
//!
//! Each guarded row carries `version`, `fence_epoch` and `fence`. Every write leaves its own stamp there, whatever
//! it asks for. What a write asks is a [`Condition`]; only `section` makes one. Stamps are compared as pairs
//! (epoch, token), so numbers of different lock systems never meet.

use std::fmt;

use super::{DatabaseError, Row, Session, Sql, Transaction, Value, sql};

/// The tables whose rows are guarded, in the order in which rows of several are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Seats.
    Seat,
    /// Wallets.
    Wallet,
}

impl Table {
    /// The table's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seat => "seat",
            Self::Wallet => "wallet",
        }
    }

    /// What its rows hold beside the guard's columns.
    fn columns(self) -> &'static str {
        match self {
            Self::Seat => "state, buyer",
            Self::Wallet => "balance",
        }
    }
}

/// Names a guarded row within its room. The order of these names is the order of locks and of row writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// Its table.
    pub table: Table,
    /// Its name in the room.
    pub name: String,
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table.name(), self.name)
    }
}

/// The stamp that a write or a claim leaves. Without a token it leaves 0, which is smaller than every token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The room's epoch when the section was entered.
    pub epoch: i64,
    /// The fencing token of this row's lock.
    pub token: Option<i64>,
}

impl Stamp {
    fn number(self) -> i64 {
        self.token.unwrap_or(0)
    }
}

/// What a write asks of the stamp that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Nothing.
    Nothing,
    /// That it is older than mine: the check that textbooks draw.
    Older,
    /// That it is mine: nobody claimed the row since I did.
    Mine,
    /// That it is of no later epoch: all that can be asked without a token.
    NoLaterEpoch,
}

/// What one row must fulfil for a write to be let in.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    /// The stamp of the writer.
    pub stamp: Stamp,
    /// What is asked of the stamp in the row.
    pub ask: Ask,
    /// The version that the row must still have, if `compare` is on.
    pub version: Option<i64>,
}

/// Why a write or a claim was refused: the first condition of its own that the row fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The row is gone.
    Gone,
    /// The row was stamped in a later epoch.
    LaterEpoch,
    /// The row was stamped with a token of this epoch that is not smaller (or, after a claim, not mine).
    StaleToken {
        /// The token found in the row.
        found: i64,
    },
    /// The row was written since it was read.
    RowChanged,
}

/// Why a guarded write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The row did not meet the write's condition.
    #[error("{row}: {refusal:?}")]
    Refused {
        /// The row.
        row: RowId,
        /// What it failed.
        refusal: Refusal,
    },
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Reads rows as they are, in the given order. A row that is gone is told as such.
pub async fn read(
    session: &mut Session,
    room_id: i64,
    rows: &[RowId],
) -> Result<Vec<Row>, WriteError> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let text = select(row.table, "");
        let answer = session
            .first(sql(text).bind(room_id).bind(row.name.as_str()))
            .await?;
        found.push(answer.ok_or_else(|| gone(row))?);
    }
    Ok(found)
}

/// Takes one row `FOR UPDATE` and reads it; without waiting, if `nowait`. SQLite has no row locks: there the
/// transaction holds the whole file already.
pub async fn lock(
    transaction: &mut Transaction,
    room_id: i64,
    row: &RowId,
    nowait: bool,
) -> Result<Row, WriteError> {
    let suffix = match (transaction.dialect(), nowait) {
        (super::Dialect::Sqlite, _) => "",
        (super::Dialect::Postgres, false) => "\nFOR UPDATE",
        (super::Dialect::Postgres, true) => "\nFOR UPDATE NOWAIT",
    };
    let text = select(row.table, suffix);
    let answer = transaction
        .first(sql(text).bind(room_id).bind(row.name.as_str()))
        .await?;
    answer.ok_or_else(|| gone(row))
}

/// What a row holds, in words.
pub fn describe(table: Table, row: &Row) -> Result<String, DatabaseError> {
    Ok(match table {
        Table::Seat => match row.maybe_text("buyer")? {
            Some(buyer) => format!("saw it {}: {buyer}", row.text("state")?),
            None => format!("saw it {}", row.text("state")?),
        },
        Table::Wallet => format!("saw {} in it", row.money("balance")?),
    })
}

fn select(table: Table, suffix: &str) -> String {
    format!(
        "SELECT version, fence_epoch, fence, {columns}
         FROM {table}
         WHERE room_id = $1
           AND name = $2{suffix}",
        columns = table.columns(),
        table = table.name(),
    )
}

/// Claims a row: leaves the stamp where it is larger than the one found, and brings what the row holds.
/// It does not raise the version: nothing of the row's own is changed. Without a token only the epoch can be claimed.
///
/// It needs no transaction around it. A commit that is lost with the server does no harm, so it is not waited for until
/// it is on the disk: a lost claim only refuses its own write.
pub async fn claim(
    session: &mut Session,
    room_id: i64,
    row: &RowId,
    stamp: Stamp,
) -> Result<Row, WriteError> {
    let ask = if stamp.token.is_some() {
        Ask::Older
    } else {
        Ask::NoLaterEpoch
    };
    let for_itself = match session.dialect() {
        super::Dialect::Postgres => FOR_ITSELF,
        super::Dialect::Sqlite => "",
    };
    let text = format!(
        "UPDATE {table}
         SET fence_epoch = $3, fence = $4
         WHERE room_id = $1
           AND name = $2
           AND {condition}{for_itself}
         RETURNING version, fence_epoch, fence, {columns}",
        condition = stamp_condition(ask),
        table = row.table.name(),
        columns = row.table.columns(),
    );
    let mut claim = stamped(text, room_id, row, stamp);
    if session.dialect() == super::Dialect::Postgres {
        claim = claim.bind(session.limit_in_ms());
    }
    if let Some(claimed) = session.first(claim).await? {
        return Ok(claimed);
    }
    let condition = Condition {
        stamp,
        ask,
        version: None,
    };
    Err(why(session, room_id, row, &condition).await?)
}

/// What a claim asks of PostgreSQL for itself, so that it needs no transaction around it: until its commit, that is not
/// to wait for the disk, and not to wait longer for a row than `$5`. Both are set before the row is touched, since they
/// depend on nothing in it.
const FOR_ITSELF: &str = "
           AND (SELECT set_config('synchronous_commit', 'off', TRUE)) = 'off'
           AND (SELECT set_config('lock_timeout', $5, TRUE)) IS NOT NULL";

/// What a write puts into a row beside the guard's columns.
#[derive(Debug)]
pub struct Change<'a> {
    /// The assignments; they may use parameters from `$6` on.
    pub set: &'a str,
    /// The values of those parameters.
    pub values: Vec<Value>,
}

/// Writes a row if it meets the condition, and tells its new version.
pub async fn write(
    transaction: &mut Transaction,
    room_id: i64,
    row: &RowId,
    condition: &Condition,
    change: Change<'_>,
) -> Result<i64, WriteError> {
    let text = update(row, condition, change.set);
    let update = write_of(text, room_id, row, condition, change.values);
    match transaction.first(update).await? {
        Some(written) => Ok(written.int("version")?),
        None => Err(why(transaction, room_id, row, condition).await?),
    }
}

/// Writes a row if it meets the condition, and records it: `record` inserts what it selects from `written`, which is
/// one row with the new `version`, and may use all parameters of the write. PostgreSQL does both in one statement, the
/// insert after the update; SQLite, which cannot, does them one after the other.
pub async fn write_and_record(
    transaction: &mut Transaction,
    room_id: i64,
    row: &RowId,
    condition: &Condition,
    change: Change<'_>,
    record: &str,
) -> Result<(), WriteError> {
    let update = update(row, condition, change.set);
    let of = |text| write_of(text, room_id, row, condition, change.values.clone());
    let recorded = match transaction.dialect() {
        super::Dialect::Postgres => {
            let both = format!("WITH written AS (\n{update}\n)\n{record}");
            transaction.execute(of(both)).await?
        }
        super::Dialect::Sqlite => match transaction.first(of(update)).await? {
            None => 0,
            Some(_) => {
                let written = select(row.table, "");
                let insert = format!("WITH written AS (\n{written}\n)\n{record}");
                transaction.execute(of(insert)).await?
            }
        },
    };
    match recorded {
        0 => Err(why(transaction, room_id, row, condition).await?),
        _ => Ok(()),
    }
}

fn update(row: &RowId, condition: &Condition, set: &str) -> String {
    format!(
        "UPDATE {table}
         SET {set}, version = version + 1, fence_epoch = $3, fence = $4
         WHERE room_id = $1
           AND name = $2
           AND {stamp}
           AND {version}
         RETURNING version",
        table = row.table.name(),
        stamp = stamp_condition(condition.ask),
        version = version_condition(condition.version),
    )
}

fn write_of(
    text: String,
    room_id: i64,
    row: &RowId,
    condition: &Condition,
    values: Vec<Value>,
) -> Sql {
    let version = condition.version.unwrap_or(0);
    let mut write = stamped(text, room_id, row, condition.stamp).bind(version);
    write.values.extend(values);
    write
}

fn stamped(text: String, room_id: i64, row: &RowId, stamp: Stamp) -> Sql {
    sql(text)
        .bind(room_id)
        .bind(row.name.as_str())
        .bind(stamp.epoch)
        .bind(stamp.number())
}

fn stamp_condition(ask: Ask) -> &'static str {
    match ask {
        Ask::Nothing => "TRUE",
        Ask::Older => "(fence_epoch, fence) < ($3, $4)",
        Ask::Mine => "(fence_epoch, fence) = ($3, $4)",
        Ask::NoLaterEpoch => "fence_epoch <= $3",
    }
}

/// The parameter stands in both texts, so that the numbers of the following ones stay.
fn version_condition(version: Option<i64>) -> &'static str {
    match version {
        Some(_) => "version = $5",
        None => "$5 = 0",
    }
}

/// Looks, in the same transaction if there is one, for the first condition of this very write that the row fails. What
/// the write did not ask is never named.
async fn why(
    session: &mut Session,
    room_id: i64,
    row: &RowId,
    condition: &Condition,
) -> Result<WriteError, DatabaseError> {
    let found = session
        .first(
            sql(select(row.table, ""))
                .bind(room_id)
                .bind(row.name.as_str()),
        )
        .await?;
    let Some(found) = found else {
        return Ok(gone(row));
    };
    let (epoch, token) = (found.int("fence_epoch")?, found.int("fence")?);
    let refusal = if condition.ask != Ask::Nothing && epoch > condition.stamp.epoch {
        Refusal::LaterEpoch
    } else if fails_stamp(condition, epoch, token) {
        Refusal::StaleToken { found: token }
    } else if condition.version.is_some() {
        Refusal::RowChanged
    } else {
        // It meets all that was asked now: the row that was refused is gone, and another one stands in its place.
        Refusal::Gone
    };
    Ok(WriteError::Refused {
        row: row.clone(),
        refusal,
    })
}

fn fails_stamp(condition: &Condition, epoch: i64, token: i64) -> bool {
    let mine = (condition.stamp.epoch, condition.stamp.number());
    match condition.ask {
        Ask::Nothing | Ask::NoLaterEpoch => false,
        Ask::Older => (epoch, token) >= mine,
        Ask::Mine => (epoch, token) != mine,
    }
}

fn gone(row: &RowId) -> WriteError {
    WriteError::Refused {
        row: row.clone(),
        refusal: Refusal::Gone,
    }
}
