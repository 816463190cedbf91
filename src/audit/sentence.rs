//! The audit in one plain sentence.

use super::Audit;
use crate::wallet::Money;

/// Says what was seen. Nothing seen is said as that, with the number of attempts, and never as "safe".
pub(super) fn sentence(audit: &Audit) -> String {
    let mut parts = Vec::new();
    match audit.seats_sold_twice.len() {
        0 => {}
        1 => parts.push("1 seat sold twice".to_owned()),
        n => parts.push(format!("{n} seats sold twice")),
    }
    let difference = audit.money.difference;
    if difference > Money::ZERO {
        parts.push(format!("{difference} appeared from nowhere"));
    } else if difference.is_negative() {
        parts.push(format!("{} vanished", difference.abs()));
    } else if !audit.wallets.is_empty() {
        parts.push(format!(
            "{} with wrong balances",
            count(audit.wallets.len(), "wallet")
        ));
    }
    if !audit.negative_wallets.is_empty() {
        parts.push(format!(
            "{} below zero",
            count(audit.negative_wallets.len(), "wallet")
        ));
    }
    if !audit.token_disorder.is_empty() {
        parts.push(format!(
            "{} out of token order",
            count(audit.token_disorder.len(), "booking")
        ));
    }
    if parts.is_empty() && audit.attempts == 0 {
        return "Nothing was booked or moved yet: none seen in 0 attempts".to_owned();
    }
    if parts.is_empty() {
        let attempts = count(usize::try_from(audit.attempts).unwrap_or(0), "attempt");
        return format!("No seat sold twice and no money lost: none seen in {attempts}");
    }
    parts.join(", ")
}

fn count(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}
