//! Moving money from one wallet to another, from the order to the commit. Read it from top to bottom.
//!
//! As in the textbook race, both balances are read and *absolute* new ones are written: that is what can be lost.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Money, TransferError, store};
use crate::database::fence::{RowId, Table};
use crate::journal::StepKind;
use crate::name::Name;
use crate::section::{Attempt, Section, SectionError};

/// Who gives how much to whom. The two wallets differ: the request was checked for it.
#[derive(Debug, Clone)]
pub struct Order {
    /// The giver.
    pub from: Name,
    /// The taker.
    pub to: Name,
    /// How much, above zero.
    pub amount: Money,
}

/// Money that was moved.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Transfer {
    /// The transfer's own id.
    pub id: Uuid,
    /// The attempt that made it.
    pub attempt: Uuid,
    /// The giver.
    pub from: String,
    /// The taker.
    pub to: String,
    /// How much.
    pub amount: Money,
    /// The replica that moved it.
    pub replica: String,
    /// The lock system that was asked, if locking was on.
    #[schema(required)]
    pub lock: Option<String>,
    /// The room's epoch.
    pub epoch: i64,
    /// The fencing token of each wallet's lock, if the lock system has them.
    pub tokens: BTreeMap<String, Option<i64>>,
}

/// The balances that a transfer writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewBalances {
    pub(super) from: Money,
    pub(super) to: Money,
}

/// Moves money, beginning anew when the room's switches changed on the way.
///
/// # Errors
/// Why it was not moved; only [`SectionError::OutcomeUnknown`] leaves that open.
pub async fn transfer(attempt: &Attempt, order: &Order) -> Result<Transfer, TransferError> {
    loop {
        match walk(attempt, order).await {
            Err(TransferError::Section(error)) => attempt.begins_anew(error).await?,
            settled => return settled,
        }
    }
}

async fn walk(attempt: &Attempt, order: &Order) -> Result<Transfer, TransferError> {
    let mut section = Section::enter(attempt, vec![wallet(&order.from), wallet(&order.to)]).await?;

    let rows = section.read().await?;
    let [from, to] = rows.as_slice() else {
        return Err(SectionError::Internal("two wallets were not read".to_owned()).into());
    };
    let (from, to) = (
        Money::from(from.money("balance")?),
        Money::from(to.money("balance")?),
    );
    section.think().await;
    let balances = order.decide(from, to).inspect_err(|refused| {
        attempt.tell(
            StepKind::Rejected,
            Some(wallet(&order.from).to_string()),
            None,
            refused.to_string(),
        );
    })?;

    // A pause may strike after this last look at the lease, and then only the protection helps.
    let protection = section.last_look()?;
    let mut transaction = section.begin_write().await?;
    let moved = store::move_money(
        &mut transaction,
        &section,
        &protection,
        attempt,
        order,
        balances,
    )
    .await;
    let transfer = section.commit(transaction, moved).await?;

    // Only after the commit: a lock freed earlier would let another replica read the balances as they were.
    section.leave();
    Ok(transfer)
}

impl Order {
    /// The rule: nobody gives what is not there.
    fn decide(&self, from: Money, to: Money) -> Result<NewBalances, TransferError> {
        if from < self.amount {
            return Err(TransferError::InsufficientFunds {
                wallet: self.from.to_string(),
                balance: from,
                amount: self.amount,
            });
        }
        Ok(NewBalances {
            from: from - self.amount,
            to: to + self.amount,
        })
    }
}

pub(super) fn wallet(name: &Name) -> RowId {
    RowId {
        table: Table::Wallet,
        name: name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(amount: &str) -> Order {
        Order {
            from: "alice".parse().unwrap(),
            to: "bob".parse().unwrap(),
            amount: amount.parse().unwrap(),
        }
    }

    #[test]
    fn a_wallet_can_be_emptied_and_no_further() {
        let hundred: Money = "100.00".parse().unwrap();
        let all = order("100").decide(hundred, Money::ZERO).unwrap();
        assert_eq!((all.from, all.to), (Money::ZERO, hundred));
        let refused = order("100.01").decide(hundred, Money::ZERO).unwrap_err();
        assert!(matches!(refused, TransferError::InsufficientFunds { .. }));
    }
}
