//! Attempts put together from their events, and each held against its record.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Check, Kept, Verdict, Wrong};
use crate::load::history::{Booking, Event, Transfer, What, Wish};

/// One attempt, from its invocation to its end.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) id: Uuid,
    pub(super) wish: &'a Wish,
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) measured_ns: Option<u64>,
    pub(super) end: End<'a>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End<'a> {
    Ok { id: Uuid },
    Refused { why: &'a str },
    Unknown,
    Unsent,
}

/// All attempts of a history, in the order in which they began.
#[derive(Debug)]
pub(super) struct Attempts<'a> {
    pub(super) all: Vec<Attempt<'a>>,
}

/// A record, of either kind.
#[derive(Debug, Clone, Copy)]
enum Record<'a> {
    Booking(&'a Booking),
    Transfer(&'a Transfer),
}

impl<'a> Attempts<'a> {
    /// What does not fit together is told and makes the verdict undecided.
    pub(super) fn of(events: &'a [Event], verdict: &mut Verdict) -> Self {
        let mut all: Vec<(Attempt<'a>, bool)> = Vec::new();
        let mut known: HashMap<Uuid, usize> = HashMap::new();
        for Event {
            at_ns,
            attempt,
            what,
        } in events
        {
            let there = known.get(attempt).copied();
            match (what, there) {
                (
                    What::Invoked {
                        wish, measured_ns, ..
                    },
                    None,
                ) => {
                    known.insert(*attempt, all.len());
                    let began = Attempt {
                        id: *attempt,
                        wish,
                        began_ns: *at_ns,
                        // Until its end is found it may still be under way.
                        ended_ns: u64::MAX,
                        measured_ns: *measured_ns,
                        end: End::Unknown,
                    };
                    all.push((began, false));
                }
                (What::Invoked { .. }, Some(_)) => {
                    verdict.undecided(format!("attempt {attempt} was invoked twice"));
                }
                (_, None) => {
                    verdict.undecided(format!("attempt {attempt} ended and never began"));
                }
                (end, Some(index)) => {
                    let (began, has_ended) = &mut all[index];
                    if *has_ended {
                        verdict.undecided(format!("attempt {attempt} ended twice"));
                    } else if *at_ns < began.began_ns {
                        verdict.undecided(format!("attempt {attempt} ended before it began"));
                    }
                    began.end = End::of(end);
                    began.ended_ns = *at_ns;
                    *has_ended = true;
                }
            }
        }
        for (attempt, has_ended) in &all {
            if !has_ended {
                verdict.undecided(format!("attempt {} has no end", attempt.id));
            }
        }
        let all: Vec<_> = all.into_iter().map(|(attempt, _)| attempt).collect();
        let attempts = Self { all };
        attempts.count(verdict);
        attempts
    }

    fn count(&self, verdict: &mut Verdict) {
        for attempt in &self.all {
            verdict.attempts += 1;
            match attempt.end {
                End::Ok { .. } => verdict.acknowledged += 1,
                End::Refused { .. } => verdict.refused += 1,
                End::Unknown => verdict.unknown += 1,
                End::Unsent => verdict.unsent += 1,
            }
        }
    }

    /// Holds each attempt against its records. Returns those that were acknowledged wrongly.
    pub(super) fn against(&self, kept: &Kept, verdict: &mut Verdict) -> Wrong {
        let mut records: HashMap<Uuid, Vec<Record<'_>>> = HashMap::new();
        for record in Record::all(kept) {
            records.entry(record.attempt()).or_default().push(record);
        }
        let mut wrong = Wrong::new();
        for attempt in &self.all {
            let records = records.remove(&attempt.id).unwrap_or_default();
            if !attempt.is_as_recorded(&records, verdict) {
                wrong.insert(attempt.id);
            }
        }
        let mut left: Vec<_> = records.into_values().flatten().collect();
        left.sort_by_key(Record::seq);
        for record in left {
            let example = format!("{} was recorded and nobody asked for it", record.what());
            verdict.find(Check::NobodyAsked, 1, example);
        }
        wrong
    }

    /// Counts those that are measured and were acknowledged: rightly, and wrongly at their time.
    pub(super) fn measure(&self, wrong: &Wrong, verdict: &mut Verdict) {
        let acknowledged = self
            .all
            .iter()
            .filter(|attempt| matches!(attempt.end, End::Ok { .. }));
        for attempt in acknowledged {
            let Some(at_ns) = attempt.measured_ns else {
                continue;
            };
            if wrong.contains(&attempt.id) {
                verdict.wrong_measured_ns.push(at_ns);
            } else {
                verdict.right_measured += 1;
            }
        }
    }
}

impl<'a> End<'a> {
    fn of(what: &'a What) -> Self {
        match what {
            What::Ok { id } => Self::Ok { id: *id },
            What::Refused { why } => Self::Refused { why },
            What::Unsent { .. } => Self::Unsent,
            What::Unknown { .. } | What::Invoked { .. } => Self::Unknown,
        }
    }
}

impl Attempt<'_> {
    fn is_as_recorded(&self, records: &[Record<'_>], verdict: &mut Verdict) -> bool {
        if let [_, _, ..] = records {
            let example = format!("{} was done {} times", self.what(), records.len());
            verdict.find(Check::DoneTwice, 1, example);
            return false;
        }
        match (self.end, records.first()) {
            (End::Ok { .. }, None) => {
                let example = format!("{} was acknowledged, and there is no record", self.what());
                verdict.find(Check::AcknowledgedMissing, 1, example);
                false
            }
            (End::Refused { .. } | End::Unsent, Some(_)) => {
                let said = match self.end {
                    End::Refused { why } => why,
                    _ => "never sent",
                };
                let example = format!("{}: {said}, and there is a record", self.what());
                verdict.find(Check::RefusedHappened, 1, example);
                false
            }
            (End::Ok { .. } | End::Unknown, Some(record)) => {
                verdict.unknown_happened += u64::from(self.end == End::Unknown);
                let is_same = record.is_of(self.wish)
                    && !matches!(self.end, End::Ok { id } if id != record.id());
                if !is_same {
                    let example = format!("{} was recorded as {}", self.what(), record.what());
                    verdict.find(Check::RecordDiffers, 1, example);
                }
                is_same
            }
            (End::Refused { .. } | End::Unsent | End::Unknown, None) => true,
        }
    }

    /// In words.
    pub(super) fn what(&self) -> String {
        match self.wish {
            Wish::Book { seat, buyer } => format!("{seat} for {buyer}"),
            Wish::Transfer { from, to, amount } => format!("{amount} from {from} to {to}"),
        }
    }
}

impl<'a> Record<'a> {
    fn all(kept: &'a Kept) -> impl Iterator<Item = Self> {
        let bookings = kept.bookings.iter().map(Self::Booking);
        bookings.chain(kept.transfers.iter().map(Self::Transfer))
    }

    fn attempt(&self) -> Uuid {
        match self {
            Self::Booking(booking) => booking.attempt,
            Self::Transfer(transfer) => transfer.attempt,
        }
    }

    fn id(&self) -> Uuid {
        match self {
            Self::Booking(booking) => booking.id,
            Self::Transfer(transfer) => transfer.id,
        }
    }

    fn seq(&self) -> i64 {
        match self {
            Self::Booking(booking) => booking.seq,
            Self::Transfer(transfer) => transfer.seq,
        }
    }

    fn is_of(&self, wish: &Wish) -> bool {
        match (self, wish) {
            (Self::Booking(record), Wish::Book { seat, buyer }) => {
                record.seat == *seat && record.buyer == *buyer
            }
            (Self::Transfer(record), Wish::Transfer { from, to, amount }) => {
                record.from == *from && record.to == *to && record.amount == *amount
            }
            _ => false,
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Booking(record) => format!("{} for {}", record.seat, record.buyer),
            Self::Transfer(record) => {
                format!("{} from {} to {}", record.amount, record.from, record.to)
            }
        }
    }
}
