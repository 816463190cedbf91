//! What was asked and answered, one event after the other, and what the room held at the end.
//!
//! As JSON lines, each side of each repetition stands alone: a line that names it, its events, then what was kept. So
//! a recorded history can be checked again without the replicas.

use std::collections::HashSet;
use std::io::{self, BufRead, Write};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Something that the generator did or heard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the run began.
    pub at_ns: u64,
    /// The attempt that it is about.
    pub attempt: Uuid,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// An attempt begins.
    Invoked {
        /// When it should have begun, in nanoseconds since the run began.
        intended_ns: u64,
        /// The same in nanoseconds of the time that is measured, which stands still while other sides have their turn;
        /// none while it warms up.
        measured_ns: Option<u64>,
        /// Who was asked.
        target: String,
        /// For what.
        #[serde(flatten)]
        wish: Wish,
    },
    /// It was done.
    Ok {
        /// The id of what was recorded for it.
        id: Uuid,
    },
    /// It was certainly not done: somebody answered so.
    Refused {
        /// The last word of the problem's type.
        why: String,
    },
    /// It may have been done.
    Unknown {
        /// The failure, or the last word of the problem's type.
        why: String,
    },
    /// It was certainly not done: nobody can have read it.
    Unsent {
        /// The failure.
        why: String,
    },
}

/// What an attempt is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "lowercase")]
pub enum Wish {
    /// To book a seat.
    Book {
        /// Which one.
        seat: String,
        /// For whom.
        buyer: String,
    },
    /// To move money.
    Transfer {
        /// From which wallet.
        from: String,
        /// To which one.
        to: String,
        /// How much.
        amount: Decimal,
    },
}

/// What the room held when all was over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Its bookings.
    pub bookings: Vec<Booking>,
    /// Its transfers.
    pub transfers: Vec<Transfer>,
    /// Its wallets.
    pub wallets: Vec<Wallet>,
}

/// A booking as the API lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "docs/api.md describes the fields")]
pub struct Booking {
    pub seq: i64,
    pub id: Uuid,
    pub attempt: Uuid,
    pub seat: String,
    pub buyer: String,
    pub replica: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    pub version_read: i64,
    pub version_written: i64,
}

/// A transfer as the API lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "docs/api.md describes the fields")]
pub struct Transfer {
    pub seq: i64,
    pub id: Uuid,
    pub attempt: Uuid,
    pub from: String,
    pub to: String,
    pub amount: Decimal,
    pub replica: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    pub from_version_read: i64,
    pub from_version_written: i64,
    pub to_version_read: i64,
    pub to_version_written: i64,
}

/// A wallet at the beginning and at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wallet {
    /// Whose it is.
    pub wallet: String,
    /// What it was opened with.
    pub opening: Decimal,
    /// What it holds.
    pub balance: Decimal,
}

/// All of one side in one repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The side's label.
    pub side: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// What was done and heard, in that order.
    pub events: Vec<Event>,
    /// What was kept at the end, or why it is not known.
    pub kept: Result<Kept, String>,
}

/// One line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Begins { side: String, repetition: u32 },
    Event(Event),
    Booking { booking: Booking },
    Transfer { transfer: Transfer },
    Wallet { kept: Wallet },
    Unknown { unknown: String },
    // Also told where nothing was kept, which is something else than what could not be read.
    End { end: bool },
}

impl Kept {
    /// Of each record, its attempt and the lock system that it was made under.
    pub fn records(&self) -> impl Iterator<Item = (Uuid, Option<&str>)> {
        let bookings = self.bookings.iter().map(|of| (of.attempt, &of.lock));
        let transfers = self.transfers.iter().map(|of| (of.attempt, &of.lock));
        let all = bookings.chain(transfers);
        all.map(|(attempt, lock)| (attempt, lock.as_deref()))
    }
}

impl History {
    /// One in which nothing has happened, and of which the end is not known.
    pub fn begins(side: String, repetition: u32) -> Self {
        Self {
            side,
            repetition,
            events: Vec::new(),
            kept: Err("the history has no end".to_owned()),
        }
    }

    /// The attempts that were told that they are done.
    pub fn acknowledged(&self) -> HashSet<Uuid> {
        let is_ok = |event: &&Event| matches!(event.what, What::Ok { .. });
        let told = self.events.iter().filter(is_ok);
        told.map(|event| event.attempt).collect()
    }

    /// Writes it, a line for each thing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let begins = Line::Begins {
            side: self.side.clone(),
            repetition: self.repetition,
        };
        line(to, &begins)?;
        for event in &self.events {
            line(to, event)?;
        }
        let kept = match &self.kept {
            Ok(kept) => kept,
            Err(why) => {
                let unknown = why.clone();
                return line(to, &Line::Unknown { unknown });
            }
        };
        for booking in kept.bookings.iter().cloned() {
            line(to, &Line::Booking { booking })?;
        }
        for transfer in kept.transfers.iter().cloned() {
            line(to, &Line::Transfer { transfer })?;
        }
        for kept in kept.wallets.iter().cloned() {
            line(to, &Line::Wallet { kept })?;
        }
        line(to, &Line::End { end: true })
    }

    /// Reads all that were written one after the other.
    ///
    /// # Errors
    /// When a line is none of a history, naming its number.
    pub fn read(from: impl BufRead) -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for (number, text) in (1..).zip(from.lines()) {
            let wrong = |why: String| io::Error::other(format!("line {number}: {why}"));
            let line = serde_json::from_str(&text?).map_err(|error| wrong(error.to_string()))?;
            if let Line::Begins { side, repetition } = line {
                all.push(Self::begins(side, repetition));
                continue;
            }
            let last = all.last_mut();
            last.ok_or_else(|| wrong("no side was named before".to_owned()))?
                .add(line);
        }
        Ok(all)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Begins { .. } => {}
            Line::Event(event) => self.events.push(event),
            Line::Booking { booking } => self.keep(|kept| kept.bookings.push(booking)),
            Line::Transfer { transfer } => self.keep(|kept| kept.transfers.push(transfer)),
            Line::Wallet { kept: wallet } => self.keep(|kept| kept.wallets.push(wallet)),
            Line::End { .. } => self.keep(|_| {}),
            Line::Unknown { unknown } => self.kept = Err(unknown),
        }
    }

    fn keep(&mut self, add: impl FnOnce(&mut Kept)) {
        match &mut self.kept {
            Ok(kept) => add(kept),
            Err(_) => {
                let mut kept = Kept::default();
                add(&mut kept);
                self.kept = Ok(kept);
            }
        }
    }
}

fn line(to: &mut impl Write, of: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, of)?;
    to.write_all(b"\n")
}
