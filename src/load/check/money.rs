//! Money is neither made nor lost, and every transfer is seen by the next one.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::{Check, Kept, Verdict, Wrong};
use crate::load::history::{Transfer, Wallet};

/// What a transfer did to one wallet.
#[derive(Debug, Clone, Copy)]
struct Update<'a> {
    version_read: i64,
    version_written: i64,
    /// What it added; below zero at the giver.
    amount: Decimal,
    transfer: &'a Transfer,
}

/// Returns the transfers of which an update was lost.
pub(super) fn check(kept: &Kept, verdict: &mut Verdict) -> Wrong {
    let mut updates: BTreeMap<&str, Vec<Update<'_>>> = BTreeMap::new();
    for transfer in &kept.transfers {
        let of_giver = updates.entry(&transfer.from).or_default();
        of_giver.push(Update::of_giver(transfer));
        let of_taker = updates.entry(&transfer.to).or_default();
        of_taker.push(Update::of_taker(transfer));
    }
    let mut wrong = Wrong::new();
    for (wallet, updates) in &updates {
        for lost in Chain::of(updates).lost() {
            wrong.insert(lost.transfer.attempt);
            verdict.find(Check::LostUpdate, 1, lost.told_of(wallet));
        }
    }
    for wallet in &kept.wallets {
        let updates = updates.get(wallet.wallet.as_str());
        let chain = Chain::of(updates.map_or(&[], Vec::as_slice));
        wrong_balance(wallet, &chain, verdict);
        if wallet.balance < Decimal::ZERO {
            let example = format!("{} holds {}", wallet.wallet, wallet.balance);
            verdict.find(Check::NegativeBalance, 1, example);
        }
    }
    wrong_sum(kept, verdict);
    wrong
}

/// The updates of a wallet on which its last balance stands, and the others.
///
/// Each write raises the version of the row by one, whatever it had read, and sets the balance that follows from what it
/// had read. So the last balance stands on the last update, on the one that wrote what that one had read, and so on
/// back to the opening. All others were overwritten by somebody who had not seen them.
struct Chain<'a> {
    kept: Vec<Update<'a>>,
    lost: Vec<Update<'a>>,
}

impl<'a> Chain<'a> {
    fn of(updates: &[Update<'a>]) -> Self {
        let mut chain = Self {
            kept: Vec::new(),
            lost: Vec::new(),
        };
        let mut updates = updates.to_vec();
        updates.sort_by_key(|update| update.version_written);
        let mut seen = i64::MAX;
        for update in updates.into_iter().rev() {
            if update.version_written > seen {
                chain.lost.push(update);
                continue;
            }
            // Nobody reads what is not written yet; from who says so, nothing follows about the others.
            seen = update.version_read.min(update.version_written - 1);
            chain.kept.push(update);
        }
        chain
    }

    /// In the order in which they were written.
    fn lost(&self) -> impl Iterator<Item = &Update<'a>> {
        self.lost.iter().rev()
    }

    fn balance(&self, opening: Decimal) -> Option<Decimal> {
        sum(self.kept.iter().map(|update| update.amount))?.checked_add(opening)
    }
}

impl<'a> Update<'a> {
    fn of_giver(transfer: &'a Transfer) -> Self {
        Self {
            version_read: transfer.from_version_read,
            version_written: transfer.from_version_written,
            amount: -transfer.amount,
            transfer,
        }
    }

    fn of_taker(transfer: &'a Transfer) -> Self {
        Self {
            version_read: transfer.to_version_read,
            version_written: transfer.to_version_written,
            amount: transfer.amount,
            transfer,
        }
    }

    fn told_of(&self, wallet: &str) -> String {
        let Transfer {
            from, to, amount, ..
        } = self.transfer;
        format!(
            "{wallet}: version {}, the update of {amount} from {from} to {to}, was overwritten by somebody who had not \
             seen it",
            self.version_written
        )
    }
}

fn wrong_balance(wallet: &Wallet, chain: &Chain<'_>, verdict: &mut Verdict) {
    let Wallet {
        wallet,
        opening,
        balance,
    } = wallet;
    match chain.balance(*opening) {
        None => verdict.undecided(too_much()),
        Some(expected) if expected == *balance => {}
        Some(expected) => {
            let example = format!("{wallet} holds {balance}, its transfers say {expected}");
            verdict.find(Check::WrongBalance, 1, example);
        }
    }
}

fn wrong_sum(kept: &Kept, verdict: &mut Verdict) {
    let opening = sum(kept.wallets.iter().map(|wallet| wallet.opening));
    let now = sum(kept.wallets.iter().map(|wallet| wallet.balance));
    let (Some(opening), Some(now)) = (opening, now) else {
        verdict.undecided(too_much());
        return;
    };
    if now == opening {
        return;
    }
    let example = if now > opening {
        format!(
            "{} appeared from nowhere: {opening} at first, {now} now",
            now - opening
        )
    } else {
        format!("{} vanished: {opening} at first, {now} now", opening - now)
    };
    verdict.find(Check::MoneyAppearedOrVanished, 1, example);
}

/// None when it is more than can be counted, which no replica answers that is in its right mind.
fn sum(mut amounts: impl Iterator<Item = Decimal>) -> Option<Decimal> {
    amounts.try_fold(Decimal::ZERO, Decimal::checked_add)
}

fn too_much() -> String {
    "the room holds more money than can be counted".to_owned()
}
