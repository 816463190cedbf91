//! Money is neither made nor lost, and every transfer is seen by the next one.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::{Check, Kept, Verdict, Wrong};
use crate::load::history::Transfer;

/// Returns the transfers whose update of a wallet was lost.
pub(super) fn check(kept: &Kept, verdict: &mut Verdict) -> Wrong {
    let (lost, losers) = lost_updates(kept, verdict);
    wrong_balances(kept, &losers, verdict);

    let sum = |of: fn(&_) -> Decimal| -> Decimal { kept.wallets.iter().map(of).sum() };
    let (opening, now) = (sum(|wallet| wallet.opening), sum(|wallet| wallet.balance));
    if now != opening {
        let difference = now - opening;
        let example = if difference > Decimal::ZERO {
            format!("{difference} appeared from nowhere: {opening} at first, {now} now")
        } else {
            format!("{} vanished: {opening} at first, {now} now", -difference)
        };
        verdict.find(Check::MoneyAppearedOrVanished, 1, example);
    }
    for wallet in &kept.wallets {
        if wallet.balance < Decimal::ZERO {
            let example = format!("{} holds {}", wallet.wallet, wallet.balance);
            verdict.find(Check::NegativeBalance, 1, example);
        }
    }
    lost
}

/// Exact: two transfers that read the same version of a wallet. All but the last one to be written are lost.
fn lost_updates<'a>(kept: &'a Kept, verdict: &mut Verdict) -> (Wrong, BTreeSet<&'a str>) {
    let mut readers: BTreeMap<(&str, i64), Vec<&Transfer>> = BTreeMap::new();
    for transfer in &kept.transfers {
        let giver = (transfer.from.as_str(), transfer.from_version_read);
        let taker = (transfer.to.as_str(), transfer.to_version_read);
        readers.entry(giver).or_default().push(transfer);
        readers.entry(taker).or_default().push(transfer);
    }
    let (mut lost, mut losers) = (Wrong::new(), BTreeSet::new());
    for ((wallet, version), mut transfers) in readers {
        if transfers.len() < 2 {
            continue;
        }
        losers.insert(wallet);
        transfers.sort_by_key(|transfer| transfer.seq);
        transfers.pop();
        for transfer in &transfers {
            lost.insert(transfer.attempt);
            let example = format!(
                "{wallet}: the update of {} from {} to {} was overwritten by another that had read version {version}",
                transfer.amount, transfer.from, transfer.to
            );
            verdict.find(Check::LostUpdate, 1, example);
        }
    }
    (lost, losers)
}

fn wrong_balances(kept: &Kept, losers: &BTreeSet<&str>, verdict: &mut Verdict) {
    let mut moved: BTreeMap<&str, Decimal> = BTreeMap::new();
    for transfer in &kept.transfers {
        *moved.entry(&transfer.from).or_default() -= transfer.amount;
        *moved.entry(&transfer.to).or_default() += transfer.amount;
    }
    for wallet in &kept.wallets {
        let name = wallet.wallet.as_str();
        let expected = wallet.opening + moved.get(name).copied().unwrap_or_default();
        if wallet.balance != expected && !losers.contains(name) {
            let example = format!(
                "{name} holds {}, its transfers say {expected}",
                wallet.balance
            );
            verdict.find(Check::WrongBalance, 1, example);
        }
    }
}
