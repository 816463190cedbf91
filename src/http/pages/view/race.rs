//! The races: their buttons, and what came of the last one.

use std::collections::BTreeSet;

use super::attempt::{StepRow, step_rows, what};
use super::words::{self, Tone, milliseconds};
use crate::race::{LastRace, Race, RacedAttempt};

/// More attempts than this are folded.
const MOST_UNFOLDED: usize = 8;

/// A race that can be started.
#[derive(Debug)]
pub struct RaceButton {
    /// Its name in forms.
    pub race: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// What happens.
    pub what: &'static str,
    /// Whether it was the last.
    pub last: bool,
}

/// All races, in the order in which people meet them.
pub fn race_buttons(last: Option<&LastRace>) -> Vec<RaceButton> {
    let button = |race: Race| {
        let (name, what) = in_words(race);
        RaceButton {
            race: race.as_str(),
            name,
            what,
            last: last.is_some_and(|last| last.race == race),
        }
    };
    Race::ALL.into_iter().map(button).collect()
}

fn in_words(race: Race) -> (&'static str, &'static str) {
    match race {
        Race::OneSeat => (
            "Two buyers, one seat",
            "Ana and Ben ask for A1 on different replicas at once.",
        ),
        Race::LostUpdate => (
            "Two times 80 from 100",
            "alice gives 80 to bob and 80 to carol at once; she has 100.",
        ),
        Race::Crossing => (
            "Crossing transfers",
            "alice gives bob 10 while bob gives alice 10.",
        ),
        Race::Crowd => ("A crowd", "50 buyers want 10 seats."),
        Race::PausedHolder => (
            "The paused holder",
            "Ana sleeps with the lock in her hand, longer than her lease; Ben books; she wakes and writes.",
        ),
    }
}

/// What came of the last race.
#[derive(Debug)]
pub struct LastRaceView {
    /// Its name for people.
    pub name: &'static str,
    /// How many got what.
    pub summary: String,
    /// What each attempt got.
    pub attempts: Vec<RacedRow>,
    /// Whether the attempts are too many to show at once.
    pub folded: bool,
    /// The audit's sentence after it.
    pub sentence: String,
    /// Whether the audit was clean.
    pub clean: bool,
    /// Who was not there, and who was asked instead.
    pub absent: Option<String>,
    /// All steps, in the order of their times.
    pub steps: Vec<StepRow>,
}

/// What an attempt got.
#[derive(Debug)]
pub struct RacedRow {
    /// The buyer, or the giver.
    pub who: String,
    /// What was tried, after who tried it, if its replica still told it.
    pub what: Option<String>,
    /// The replica that it was sent to.
    pub replica: String,
    /// How it ended, in words.
    pub outcome: String,
    /// How that is shown.
    pub tone: Tone,
    /// The status of the answer; 0 when there was none.
    pub status: u16,
    /// The fencing token.
    pub token: Option<i64>,
    /// From sending to the answer.
    pub ms: String,
}

impl LastRaceView {
    /// Of a race.
    pub fn new(last: &LastRace) -> Self {
        let (name, _) = in_words(last.race);
        Self {
            name,
            summary: summary(&last.attempts),
            attempts: last.attempts.iter().map(|raced| row(raced, last)).collect(),
            folded: last.attempts.len() > MOST_UNFOLDED,
            sentence: last.sentence.clone(),
            clean: last.clean,
            absent: absent(last),
            steps: step_rows(&last.records),
        }
    }
}

fn row(raced: &RacedAttempt, race: &LastRace) -> RacedRow {
    let mut records = race.records.iter();
    let record = records.find(|record| record.attempt == raced.attempt);
    let (outcome, tone) = words::outcome(&raced.outcome);
    RacedRow {
        who: raced.buyer.clone(),
        what: record.map(what),
        replica: raced.replica.clone(),
        outcome: outcome.to_owned(),
        tone,
        status: raced.status,
        token: raced.token,
        ms: milliseconds(raced.ms),
    }
}

/// How many got what: `2 attempts: 1 booked, 1 seat-taken`.
fn summary(attempts: &[RacedAttempt]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for raced in attempts {
        match counts
            .iter_mut()
            .find(|(outcome, _)| *outcome == raced.outcome)
        {
            Some((_, count)) => *count += 1,
            None => counts.push((&raced.outcome, 1)),
        }
    }
    let each: Vec<_> = counts
        .into_iter()
        .map(|(outcome, count)| format!("{count} {outcome}"))
        .collect();
    let all = words::count(attempts.len(), "attempt");
    format!("{all}: {}", each.join(", "))
}

/// `Replica B did not answer when the race began: all attempts went to A.`
fn absent(last: &LastRace) -> Option<String> {
    if last.absent.is_empty() {
        return None;
    }
    let asked: BTreeSet<&str> = (last.attempts.iter())
        .map(|raced| raced.replica.as_str())
        .collect();
    let absent = last.absent.join(", ");
    let replica = if last.absent.len() == 1 {
        "Replica"
    } else {
        "Replicas"
    };
    let asked = Vec::from_iter(asked).join(", ");
    Some(format!(
        "{replica} {absent} did not answer when the race began: all attempts went to {asked}."
    ))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn raced(outcome: &str, replica: &str) -> RacedAttempt {
        RacedAttempt {
            attempt: Uuid::nil(),
            replica: replica.to_owned(),
            buyer: "Ana".to_owned(),
            status: 201,
            outcome: outcome.to_owned(),
            token: None,
            ms: 1.0,
        }
    }

    #[test]
    fn who_was_not_there_is_named() {
        let mut last = LastRace {
            race: Race::OneSeat,
            attempts: vec![raced("booked", "C"), raced("seat-taken", "A")],
            absent: Vec::new(),
            sentence: String::new(),
            clean: true,
            records: Vec::new(),
        };
        assert_eq!(absent(&last), None);
        last.absent = vec!["B".to_owned()];
        let said = "Replica B did not answer when the race began: all attempts went to A, C.";
        assert_eq!(absent(&last).as_deref(), Some(said));
    }

    #[test]
    fn equal_outcomes_are_counted_together() {
        let attempts = ["booked", "seat-taken", "booked"].map(|outcome| raced(outcome, "A"));
        assert_eq!(summary(&attempts), "3 attempts: 2 booked, 1 seat-taken");
    }
}
