//! The write of a transfer: both wallets' new balances under the section's protection, and the record of it.

use uuid::Uuid;

use super::transfer::{NewBalances, wallet};
use super::{Money, Order, Transfer, TransferRecord};
use crate::database::fence::{self, Change, RowId, WriteError};
use crate::database::{DatabaseError, Session, Transaction, Value, sql};
use crate::section::{Attempt, Protection, Section};

/// Writes both balances, in the order in which rows are touched, and records the transfer.
///
/// One row that refuses makes the caller roll all back.
pub(super) async fn move_money(
    transaction: &mut Transaction,
    section: &Section<'_>,
    protection: &Protection,
    attempt: &Attempt,
    order: &Order,
    balances: NewBalances,
) -> Result<Transfer, WriteError> {
    let room = section.room();
    let (from, to) = (wallet(&order.from), wallet(&order.to));
    let (from_version, to_version) = if from < to {
        let first = write(transaction, room.id, protection, &from, balances.from).await?;
        (
            first,
            write(transaction, room.id, protection, &to, balances.to).await?,
        )
    } else {
        let first = write(transaction, room.id, protection, &to, balances.to).await?;
        (
            write(transaction, room.id, protection, &from, balances.from).await?,
            first,
        )
    };

    let token = |row: &RowId| protection.condition(row).stamp.token;
    let transfer = Transfer {
        id: Uuid::new_v4(),
        attempt: attempt.id,
        from: order.from.to_string(),
        to: order.to.to_string(),
        amount: order.amount,
        replica: attempt.replica().to_owned(),
        lock: room
            .switches
            .locking
            .then(|| room.switches.lock.to_string()),
        epoch: room.epoch,
        tokens: [
            (order.from.to_string(), token(&from)),
            (order.to.to_string(), token(&to)),
        ]
        .into(),
    };
    let text = "INSERT INTO transfer (
                    transfer_id, room_id, attempt, replica, lock_system, epoch, amount,
                    from_wallet, from_token, from_version_read, from_version_written,
                    to_wallet, to_token, to_version_read, to_version_written
                )
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    let insert = sql(text)
        .bind(transfer.id)
        .bind(room.id)
        .bind(transfer.attempt)
        .bind(transfer.replica.as_str())
        .bind(transfer.lock.as_deref())
        .bind(transfer.epoch)
        .bind(transfer.amount.decimal())
        .bind(transfer.from.as_str())
        .bind(token(&from))
        .bind(section.version(&from))
        .bind(from_version)
        .bind(transfer.to.as_str())
        .bind(token(&to))
        .bind(section.version(&to))
        .bind(to_version);
    transaction.execute(insert).await?;
    Ok(transfer)
}

async fn write(
    transaction: &mut Transaction,
    room_id: i64,
    protection: &Protection,
    row: &RowId,
    balance: Money,
) -> Result<i64, WriteError> {
    let change = Change {
        set: "balance = $6",
        values: vec![Value::from(balance.decimal())],
    };
    fence::write(
        transaction,
        room_id,
        row,
        &protection.condition(row),
        change,
    )
    .await
}

/// The transfers of a room whose number is above `after`, at most `limit` of them, in the order of their numbers.
///
/// # Errors
/// When the database fails.
pub async fn records(
    session: &mut Session,
    room_id: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<TransferRecord>, DatabaseError> {
    let text = "SELECT seq, transfer_id, attempt, replica, lock_system, epoch, from_wallet, to_wallet, amount,
                       from_version_read, from_version_written, to_version_read, to_version_written
                FROM transfer
                WHERE room_id = $1
                  AND seq > $2
                ORDER BY seq
                LIMIT $3";
    let select = sql(text).bind(room_id).bind(after).bind(limit);
    let rows = session.all(select).await?;
    rows.iter()
        .map(|row| {
            Ok(TransferRecord {
                seq: row.int("seq")?,
                id: row.uuid("transfer_id")?,
                attempt: row.uuid("attempt")?,
                from: row.text("from_wallet")?,
                to: row.text("to_wallet")?,
                amount: row.money("amount")?.into(),
                replica: row.text("replica")?,
                lock: row.maybe_text("lock_system")?,
                epoch: row.int("epoch")?,
                from_version_read: row.int("from_version_read")?,
                from_version_written: row.int("from_version_written")?,
                to_version_read: row.int("to_version_read")?,
                to_version_written: row.int("to_version_written")?,
            })
        })
        .collect()
}
