//! The wallets: what they hold, and what they should hold.

use super::words::signed;
use crate::audit::Audit;
use crate::room::ShownWallet;

/// The wallets.
#[derive(Debug)]
pub struct WalletsView {
    /// What they hold together.
    pub summary: String,
    /// Whether any holds something else than it should, or the sum is not what it was.
    pub off: bool,
    /// Each wallet.
    pub wallets: Vec<WalletRow>,
}

/// A wallet.
#[derive(Debug)]
pub struct WalletRow {
    /// Whose it is.
    pub name: String,
    /// What it holds.
    pub balance: String,
    /// What it should hold, if it differs.
    pub expected: Option<String>,
}

impl WalletsView {
    /// Of all wallets, and of those that the audit found off.
    pub fn new(wallets: &[ShownWallet], audit: &Audit) -> Self {
        let row = |shown: &ShownWallet| {
            let off = audit.wallets.iter().find(|off| off.wallet == shown.wallet);
            WalletRow {
                name: shown.wallet.clone(),
                balance: signed(shown.balance),
                expected: off.map(|off| signed(off.expected)),
            }
        };
        Self {
            summary: summary(audit),
            off: !audit.wallets.is_empty() || audit.money.opened != audit.money.now,
            wallets: wallets.iter().map(row).collect(),
        }
    }
}

fn summary(audit: &Audit) -> String {
    let (opened, now) = (signed(audit.money.opened), signed(audit.money.now));
    if opened == now {
        format!("together {now}, as opened")
    } else {
        format!("together {now}, opened with {opened}")
    }
}
