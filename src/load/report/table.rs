//! The report in a terminal: one row for each side, under it how it differs from the first.

use std::fmt;

use super::{Holds, Report, SideReport, shown};
use crate::load::check::{Check, Outcome};
use crate::load::settings::Metric;
use crate::load::statistics::{Difference, Significance};

/// What a row shows.
const COLUMNS: [(Metric, &str); 8] = [
    (Metric::Throughput, "throughput"),
    (Metric::Goodput, "goodput"),
    (Metric::P50, "p50"),
    (Metric::P99, "p99"),
    (Metric::ServiceP99, "service p99"),
    (Metric::Refused, "refused"),
    (Metric::Failures, "failures"),
    (Metric::Violations, "violations"),
];

/// What stands where nothing is known.
const NOTHING: &str = "–";

/// Space between columns.
const GAP: usize = 2;

/// A report for a terminal, as text.
#[derive(Debug)]
pub struct Table<'a>(pub &'a Report);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let asked = &report.asked;
        writeln!(
            f,
            "{} · {} · seed {}",
            asked.workload, asked.pace, asked.seed
        )?;
        writeln!(
            f,
            "{} s for each side after {} s of warming up, {}, {}",
            asked.duration_s,
            asked.warm_up_s,
            asked.order,
            times(asked.schedules.len())
        )?;
        writeln!(f)?;
        write_rows(f, &rows(report))?;
        if report.sides.len() > 1 {
            writeln!(f, "{}", legend(report))?;
        }
        writeln!(f)?;
        for side in &report.sides {
            write_side(f, side)?;
        }
        for judged in &report.thresholds {
            let word = match judged.holds {
                Holds::Yes => "✓ holds",
                Holds::No => "✗ does not hold",
                Holds::Unknown => "? cannot be decided",
            };
            writeln!(f, "{word}: {} ({})", judged.threshold, judged.side)?;
        }
        for note in &report.notes {
            writeln!(f, "note: {note}")?;
        }
        let used = &report.generator;
        writeln!(
            f,
            "the generator used {:.1} % of {} processors",
            used.percent(),
            used.processors
        )
    }
}

/// What was seen of a side, in one sentence.
pub fn sentence(side: &SideReport) -> String {
    let verdict = &side.verdict;
    let seen = format!(
        "in {} attempts, {} of them contended",
        verdict.attempts, verdict.contended
    );
    match side.outcome {
        Outcome::NoneSeen => format!("no violation was seen {seen}"),
        Outcome::Violated => {
            let violations = verdict.violations();
            let plural = if violations == 1 { "" } else { "s" };
            format!("{violations} violation{plural} {seen}")
        }
        Outcome::NotExercised if verdict.acknowledged + verdict.unknown_happened == 0 => {
            format!(
                "not exercised: nothing was done in {} attempts",
                verdict.attempts
            )
        }
        Outcome::NotExercised => format!("not exercised: nobody met anybody {seen}"),
        Outcome::Unknown => format!("unknown: {}", verdict.undecided.join("; ")),
    }
}

/// The sign of an outcome, so that it is not told by colour alone.
pub fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NoneSeen => "✓",
        Outcome::Violated => "✗",
        Outcome::NotExercised | Outcome::Unknown => "?",
    }
}

/// How a difference is shown: in percent, and whether it is one.
pub fn difference(difference: &Difference) -> String {
    if difference.mean == 0.0 {
        return "=".to_owned();
    }
    let size = match difference.percent {
        Some(percent) => format!("{percent:+.1} %"),
        None => format!("{:+.1}", difference.mean),
    };
    match difference.verdict {
        Significance::NotSignificant => format!("{size} n.s."),
        Significance::Significant | Significance::OneRun => size,
    }
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let titles = COLUMNS.iter().map(|(_, title)| (*title).to_owned());
    let ends = ["trips".to_owned()];
    let mut rows = vec![
        std::iter::once("side".to_owned())
            .chain(titles)
            .chain(ends)
            .collect(),
    ];
    for side in &report.sides {
        let value = |metric| {
            let value = side.figures.get(&metric);
            value.map_or_else(|| NOTHING.to_owned(), |value| shown(metric, *value))
        };
        let trips = side
            .time
            .map_or_else(|| NOTHING.to_owned(), |time| format!("{:.1}", time.trips));
        let cells = COLUMNS.iter().map(|(metric, _)| value(*metric));
        rows.push(
            std::iter::once(side.label.clone())
                .chain(cells)
                .chain([trips])
                .collect(),
        );
        if side.differences.is_empty() {
            continue;
        }
        let cells = COLUMNS.iter().map(|(metric, _)| {
            side.differences
                .get(metric)
                .map(difference)
                .unwrap_or_default()
        });
        rows.push(
            std::iter::once("  to the first".to_owned())
                .chain(cells)
                .collect(),
        );
    }
    rows
}

fn write_rows(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{:GAP$}{cell:>width$}", "")
            };
            line.push_str(&cell);
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn legend(report: &Report) -> &'static str {
    if report.asked.schedules.len() > 1 {
        "n.s.: not significant at 95 % (Student's t over the repetitions)"
    } else {
        "one repetition cannot tell whether a difference is significant; --repeat 5 can"
    }
}

fn write_side(f: &mut fmt::Formatter<'_>, side: &SideReport) -> fmt::Result {
    writeln!(
        f,
        "{} {}: {}",
        sign(side.outcome),
        side.label,
        sentence(side)
    )?;
    for check in Check::ALL {
        let Some(finding) = side.verdict.findings.get(&check) else {
            continue;
        };
        let example = finding
            .examples
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        writeln!(
            f,
            "    {} {}, such as: {example}",
            finding.count,
            check.title()
        )?;
    }
    if side.verdict.unknown > 0 {
        writeln!(
            f,
            "    {} with an unknown outcome, of which {}{} had happened",
            side.verdict.unknown,
            // Not all of the room was seen.
            if side.verdict.undecided.is_empty() {
                ""
            } else {
                "at least "
            },
            side.verdict.unknown_happened
        )?;
    }
    counts(f, "refused", side.refused.iter())?;
    counts(f, "unclear", side.unclear.iter())?;
    counts(f, "failed", side.failed.iter())?;
    let count = |metric| side.figures.get(&metric).copied().unwrap_or(0.0);
    let (late, unsent) = (count(Metric::Late), count(Metric::Unsent));
    if late + unsent > 0.0 {
        writeln!(f, "    {late:.0} began late, {unsent:.0} were not begun")?;
    }
    if let Some(time) = side.time {
        writeln!(
            f,
            "    an attempt waited {:.1} ms for locks, held them for {:.1} ms, worked for {:.1} ms, and made {:.1} \
             requests to the lock system",
            time.wait_ms, time.hold_ms, time.work_ms, time.trips
        )?;
    }
    Ok(())
}

fn counts<'a, K: fmt::Display + 'a>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    counts: impl Iterator<Item = (&'a K, &'a u64)>,
) -> fmt::Result {
    let all: Vec<_> = counts
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(f, "    {what}: {}", all.join(", "))
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}
