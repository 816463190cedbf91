//! The audit in detail, under its one sentence.

use super::words::{self, TokenNames, signed};
use crate::audit::{Audit, Disorder, SoldTwice, WalletOff};

/// How many of one kind are listed; the seat map and the audit's JSON have them all.
const MOST_LISTED: usize = 12;

/// More lines than this are folded under the sentence.
const MOST_UNFOLDED: usize = 4;

/// The audit in words.
#[derive(Debug)]
pub struct AuditView {
    /// Whether no violation was seen.
    pub clean: bool,
    /// All of it in one sentence.
    pub sentence: String,
    /// What to try next.
    pub hint: Option<&'static str>,
    /// Seats with more than one booking.
    pub seats: Vec<SoldTwice>,
    /// The sum of all money, if it is not what it was.
    pub money: Option<String>,
    /// Wallets that hold something else than they should.
    pub wallets: Vec<WalletLine>,
    /// Bookings out of the order of their tokens.
    pub disorder: Vec<Disorder>,
    /// How tokens are named in these lines.
    pub tokens: TokenNames,
    /// Whether there are too many lines to show at once.
    pub folded: bool,
    /// How many violations are not listed here.
    pub more: usize,
    /// Leases of ended attempts that may still stand.
    pub leases: String,
}

/// A wallet that holds something else than it should.
#[derive(Debug)]
pub struct WalletLine {
    /// Whose it is.
    pub wallet: String,
    /// What it holds.
    pub balance: String,
    /// What it should hold.
    pub expected: String,
}

impl AuditView {
    /// Of an audit, in a room with locking on or off.
    pub fn new(audit: &Audit, locking: bool) -> Self {
        let lists = [
            audit.seats_sold_twice.len(),
            audit.wallets.len(),
            audit.token_disorder.len(),
        ];
        let (seats, disorder) = (first(&audit.seats_sold_twice), first(&audit.token_disorder));
        Self {
            clean: audit.clean,
            sentence: audit.sentence.clone(),
            hint: hint(audit, locking),
            tokens: TokenNames::of(tokens(&seats, &disorder)),
            seats,
            money: money(audit),
            wallets: first(&audit.wallets).iter().map(wallet_line).collect(),
            disorder,
            folded: lists.iter().sum::<usize>() > MOST_UNFOLDED,
            more: lists
                .into_iter()
                .map(|listed| listed.saturating_sub(MOST_LISTED))
                .sum(),
            leases: leases(audit.leases_left),
        }
    }
}

fn hint(audit: &Audit, locking: bool) -> Option<&'static str> {
    match (audit.clean, locking) {
        (true, true) if audit.attempts == 0 => {
            Some("Start a race. Then switch locking off and start it again.")
        }
        (true, false) => Some("Start a race: now nothing keeps the buyers apart."),
        (false, false) => Some("Switch locking on and start the race again."),
        (true, true) | (false, true) => None,
    }
}

fn first<T: Clone>(list: &[T]) -> Vec<T> {
    list.iter().take(MOST_LISTED).cloned().collect()
}

fn tokens(seats: &[SoldTwice], disorder: &[Disorder]) -> Vec<i64> {
    let sales = seats.iter().flat_map(|sold| &sold.bookings);
    let late = disorder
        .iter()
        .flat_map(|late| [late.token, late.after_token]);
    sales.filter_map(|sale| sale.token).chain(late).collect()
}

fn money(audit: &Audit) -> Option<String> {
    let sum = &audit.money;
    (sum.opened != sum.now).then(|| {
        let what = if sum.difference.is_negative() {
            format!("{} vanished", sum.difference.abs())
        } else {
            format!("{} appeared from nowhere", sum.difference)
        };
        let (opened, now) = (signed(sum.opened), signed(sum.now));
        format!("The wallets were opened with {opened} and hold {now}: {what}.")
    })
}

fn wallet_line(off: &WalletOff) -> WalletLine {
    WalletLine {
        wallet: off.wallet.clone(),
        balance: signed(off.balance),
        expected: signed(off.expected),
    }
}

fn leases(left: Option<u64>) -> String {
    match left {
        None => "A replica did not say how many leases of ended attempts still stand.".to_owned(),
        Some(0) => "No lease of an ended attempt is left.".to_owned(),
        Some(left) => {
            let left = words::count(usize::try_from(left).unwrap_or(usize::MAX), "lease");
            format!("{left} of ended attempts may still stand.")
        }
    }
}
