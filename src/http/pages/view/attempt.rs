//! What became of one attempt, and an attempt's steps as rows of a table.

use super::words::{self, Tone, milliseconds};
use crate::journal::{Record, Step, StepKind};

/// What became of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptView {
    /// Who tried.
    pub who: String,
    /// What was tried, after who tried it.
    pub what: String,
    /// How it ended.
    pub outcome: String,
    /// How that is shown.
    pub tone: Tone,
    /// What exactly was in the way.
    pub why: Option<String>,
    /// The replica that ran it.
    pub replica: String,
    /// Its token, if it had one.
    pub token: Option<i64>,
    /// Its steps.
    pub steps: Vec<StepRow>,
}

/// A step in a table.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// Since the first step of the table, in milliseconds.
    pub ms: String,
    /// On which replica.
    pub replica: String,
    /// Who.
    pub who: String,
    /// What kind of step.
    pub kind: &'static str,
    /// The lock's key or the row.
    pub key: Option<String>,
    /// The fencing token.
    pub token: Option<i64>,
    /// What was seen, written or refused.
    pub detail: String,
}

impl AttemptView {
    /// Of what is remembered of an attempt.
    pub fn new(record: &Record) -> Self {
        let (outcome, tone) = match &record.outcome {
            Some(word) => words::outcome(word),
            None => ("still under way; reload to see how it ends", Tone::Unknown),
        };
        Self {
            who: record.who.clone(),
            what: what(record),
            outcome: outcome.to_owned(),
            tone,
            why: why(record).filter(|_| tone != Tone::Right),
            replica: record.replica.clone(),
            token: record.steps.iter().rev().find_map(|step| step.token),
            steps: step_rows([record]),
        }
    }
}

impl AttemptView {
    /// Of an attempt that no replica tells of.
    pub fn untold() -> Self {
        let why = "its replica does not answer, or has forgotten it. It may have happened: look before you try again";
        Self {
            who: "The attempt".to_owned(),
            what: String::new(),
            outcome: "not known".to_owned(),
            tone: Tone::Unknown,
            why: Some(why.to_owned()),
            replica: "unknown".to_owned(),
            token: None,
            steps: Vec::new(),
        }
    }
}

/// Without who, so that a name in a script of the other direction cannot turn the sentence around.
pub fn what(record: &Record) -> String {
    let what = record.what.strip_prefix(&record.who);
    what.unwrap_or(&record.what).trim_start().to_owned()
}

fn why(record: &Record) -> Option<String> {
    let refused = record.steps.iter().rev();
    refused
        .into_iter()
        .find(|step| step.kind == StepKind::Rejected)
        .map(|step| step.detail.clone())
}

/// The steps of all records in the order of their times.
pub fn step_rows<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<StepRow> {
    let mut steps: Vec<(&Record, &Step)> = records
        .into_iter()
        .flat_map(|record| record.steps.iter().map(move |step| (record, step)))
        .collect();
    steps.sort_by(|(_, a), (_, b)| a.at_ms.total_cmp(&b.at_ms));
    let began = steps.first().map_or(0.0, |(_, step)| step.at_ms);
    let row = |(record, step): (&Record, &Step)| StepRow {
        ms: milliseconds(step.at_ms - began),
        replica: record.replica.clone(),
        who: record.who.clone(),
        kind: kind(step.kind),
        key: step.key.clone(),
        token: step.token,
        detail: step.detail.clone(),
    };
    steps.into_iter().map(row).collect()
}

fn kind(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Began => "began",
        StepKind::Asked => "asked",
        StepKind::Granted => "granted",
        StepKind::Read => "read",
        StepKind::Paused => "paused",
        StepKind::Resumed => "resumed",
        StepKind::Lost => "lost",
        StepKind::Thought => "thought",
        StepKind::Wrote => "wrote",
        StepKind::Rejected => "rejected",
        StepKind::Anew => "anew",
        StepKind::Committed => "committed",
        StepKind::Released => "released",
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn record(who: &str, steps: &[(f64, StepKind, &str)]) -> Record {
        let steps = steps
            .iter()
            .map(|&(at_ms, kind, detail)| Step::new(at_ms, kind, detail));
        Record {
            attempt: Uuid::nil(),
            replica: "A".to_owned(),
            room: "main".to_owned(),
            who: who.to_owned(),
            what: format!("{who} books A1"),
            outcome: Some("seat-taken".to_owned()),
            steps: steps.collect(),
        }
    }

    #[test]
    fn a_refused_attempt_says_what_was_in_the_way() {
        let taken = "seat A1 is already booked by Ana";
        let ben = record("Ben", &[(1.0, StepKind::Rejected, taken)]);
        let view = AttemptView::new(&ben);
        assert_eq!((view.who.as_str(), view.what.as_str()), ("Ben", "books A1"));
        assert_eq!(view.why.as_deref(), Some(taken));
        assert_eq!(view.tone, Tone::Refused);
    }

    #[test]
    fn steps_of_several_attempts_stand_in_the_order_of_their_times() {
        let ana = record(
            "Ana",
            &[(10.0, StepKind::Asked, ""), (30.5, StepKind::Read, "")],
        );
        let ben = record("Ben", &[(20.0, StepKind::Asked, "")]);
        let rows = step_rows([&ana, &ben]);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.ms.as_str(), row.who.as_str()))
            .collect();
        assert_eq!(told, [("0.0", "Ana"), ("10.0", "Ben"), ("20.5", "Ana")]);
    }
}
