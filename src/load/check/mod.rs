//! A history and a final state, held against each other.
//!
//! Pure: the same history gives the same verdict. Promises: it accuses nobody wrongly, since an attempt whose outcome
//! is unknown may have happened or not; it never says "none seen" of a history that is no history, or in which nobody
//! met anybody. Does not promise to see what leaves no trace in answers and records.

mod attempts;
mod contention;
mod money;
mod seats;

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use uuid::Uuid;

use self::attempts::Attempts;
use super::history::{History, Kept};

/// How many examples of each finding are told.
const MOST_EXAMPLES: usize = 5;

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Two buyers were told that one seat is theirs.
    SeatAcknowledgedTwice,
    /// A seat was sold twice, and not both buyers were told so.
    SeatSoldTwice,
    /// Somebody was told that it is done, and there is no record of it.
    AcknowledgedMissing,
    /// A record of what was refused or never sent.
    RefusedHappened,
    /// One attempt, several records.
    DoneTwice,
    /// A record says something else than was asked or answered.
    RecordDiffers,
    /// A record of what nobody asked for.
    NobodyAsked,
    /// A buyer was told that a seat is taken, and it never was.
    RefusedFree,
    /// An update of a wallet was overwritten by somebody who had not seen it.
    LostUpdate,
    /// A wallet holds something else than the transfers say on which its last version stands.
    WrongBalance,
    /// All wallets together hold something else than they were opened with.
    MoneyAppearedOrVanished,
    /// A wallet is below zero.
    NegativeBalance,
}

impl Check {
    /// All of them, as they are told.
    pub const ALL: [Self; 12] = [
        Self::SeatAcknowledgedTwice,
        Self::SeatSoldTwice,
        Self::AcknowledgedMissing,
        Self::RefusedHappened,
        Self::DoneTwice,
        Self::RecordDiffers,
        Self::NobodyAsked,
        Self::RefusedFree,
        Self::LostUpdate,
        Self::WrongBalance,
        Self::MoneyAppearedOrVanished,
        Self::NegativeBalance,
    ];

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::SeatAcknowledgedTwice => "seats acknowledged twice",
            Self::SeatSoldTwice => "seats sold twice, not to both buyers' knowledge",
            Self::AcknowledgedMissing => "acknowledged, but missing",
            Self::RefusedHappened => "refused or never sent, but done",
            Self::DoneTwice => "asked once, done twice",
            Self::RecordDiffers => "recorded otherwise than asked or answered",
            Self::NobodyAsked => "done, but never asked for",
            Self::RefusedFree => "told that it is taken, but free",
            Self::LostUpdate => "lost updates",
            Self::WrongBalance => "wallets that differ from their transfers",
            Self::MoneyAppearedOrVanished => "money that appeared or vanished",
            Self::NegativeBalance => "wallets below zero",
        }
    }
}

/// How often something was wrong, with the first examples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// The first ones, in words.
    pub examples: Vec<String>,
}

/// What became of a side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What was wrong.
    pub findings: BTreeMap<Check, Finding>,
    /// Attempts that were invoked.
    pub attempts: u64,
    /// Those that were done.
    pub acknowledged: u64,
    /// Those that were done, counted in what is measured, and not wrong.
    pub right_measured: u64,
    /// When those began that are wrong, in nanoseconds of the measured time.
    #[serde(skip)]
    pub wrong_measured_ns: Vec<u64>,
    /// Those that were refused.
    pub refused: u64,
    /// Those whose outcome was not told.
    pub unknown: u64,
    /// Those of them that happened all the same.
    pub unknown_happened: u64,
    /// Those that nobody can have read.
    pub unsent: u64,
    /// Attempts that met another one: both were under way, for the same seat or wallet, and at least one was done.
    pub contended: u64,
    /// Why nothing can be said for certain: the history has holes, or the room could not be read.
    pub undecided: Vec<String>,
}

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No violation was seen, and there was occasion for it.
    NoneSeen,
    /// At least one was seen.
    Violated,
    /// Nobody met anybody who was served, so nothing could go wrong.
    NotExercised,
    /// It cannot be said.
    Unknown,
}

impl Verdict {
    /// How many violations were seen.
    pub fn violations(&self) -> u64 {
        self.findings.values().map(|finding| finding.count).sum()
    }

    /// What was seen stands, whatever else could not be seen.
    pub fn outcome(&self) -> Outcome {
        if !self.findings.is_empty() {
            Outcome::Violated
        } else if !self.undecided.is_empty() {
            Outcome::Unknown
        } else if self.contended == 0 {
            Outcome::NotExercised
        } else {
            Outcome::NoneSeen
        }
    }

    /// Both together, as of one side in two repetitions.
    pub fn add(&mut self, other: &Self) {
        for (check, finding) in &other.findings {
            let mine = self.findings.entry(*check).or_default();
            mine.count += finding.count;
            let room = MOST_EXAMPLES.saturating_sub(mine.examples.len());
            mine.examples
                .extend(finding.examples.iter().take(room).cloned());
        }
        self.attempts += other.attempts;
        self.acknowledged += other.acknowledged;
        self.right_measured += other.right_measured;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.unknown_happened += other.unknown_happened;
        self.unsent += other.unsent;
        self.contended += other.contended;
        self.undecided.extend(other.undecided.iter().cloned());
    }

    fn find(&mut self, check: Check, count: u64, example: String) {
        let finding = self.findings.entry(check).or_default();
        finding.count += count;
        if finding.examples.len() < MOST_EXAMPLES {
            finding.examples.push(example);
        }
    }

    fn undecided(&mut self, why: String) {
        if self.undecided.len() < MOST_EXAMPLES {
            self.undecided.push(why);
        }
    }
}

/// Checks one side of one repetition.
pub fn check(history: &History) -> Verdict {
    let mut verdict = Verdict::default();
    let attempts = Attempts::of(&history.events, &mut verdict);
    verdict.contended = contention::contended(&attempts);
    let kept = match &history.kept {
        Ok(kept) => kept,
        Err(why) => {
            verdict.undecided(why.clone());
            return verdict;
        }
    };
    let mut wrong = attempts.against(kept, &mut verdict);
    wrong.extend(seats::check(&attempts, kept, &mut verdict));
    wrong.extend(money::check(kept, &mut verdict));
    attempts.measure(&wrong, &mut verdict);
    verdict
}

/// Attempts that were acknowledged and should not have been.
type Wrong = HashSet<Uuid>;

#[cfg(test)]
mod tests;
