//! The report as one HTML file: charts inside, no script, no request.

use askama::Template;

use super::chart::{Chart, Scale, Series, WIDTH, coordinate, short};
use super::table::{difference, sentence, sign};
use super::{Holds, Judged, Report, SideReport, SliceReport, milliseconds, shown};
use crate::load::check::{Check, Outcome};
use crate::load::settings::Metric;
use crate::load::statistics::Significance;

/// What the table shows.
const ROWS: [(Metric, &str); 13] = [
    (Metric::Throughput, "Throughput"),
    (Metric::Goodput, "Goodput"),
    (Metric::P50, "Response, median"),
    (Metric::P90, "Response, 90 %"),
    (Metric::P99, "Response, 99 %"),
    (Metric::P999, "Response, 99.9 %"),
    (Metric::Max, "Response, longest"),
    (Metric::ServiceP50, "Service, median"),
    (Metric::ServiceP99, "Service, 99 %"),
    (Metric::Refused, "Refused"),
    (Metric::Failures, "Failures"),
    (Metric::Late, "Begun late"),
    (Metric::Unsent, "Not begun"),
];

/// Up to where a spectrum is drawn: one answer in ten thousand.
const RAREST: f64 = 10_000.0;

/// How long a bar can be.
const BAR: f64 = 560.0;

/// How many letters of a label stand beside a chart; sides mostly differ at their ends.
const LONGEST_LABEL: usize = 21;

/// Writes the page.
#[derive(Template)]
#[template(path = "load/report.html")]
#[derive(Debug)]
pub struct Page<'a> {
    report: &'a Report,
    headline: String,
    workload: String,
    sides: Vec<Card<'a>>,
    rows: Vec<Row>,
    findings: Vec<FindingRow>,
    spectrum: Chart,
    rates: Chart,
    latencies: Chart,
    strips: Vec<Strip>,
    goods: Vec<Bar>,
    times: Vec<Bar>,
    percentiles: Vec<Percentiles>,
    has_repetitions: bool,
    has_schedule: bool,
    json: String,
}

/// A side at a glance.
#[derive(Debug)]
struct Card<'a> {
    side: usize,
    report: &'a SideReport,
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    sentence: String,
    goodput: String,
    p99: String,
    trips: String,
}

/// A figure of all sides.
#[derive(Debug)]
struct Row {
    title: &'static str,
    cells: Vec<Cell>,
}

#[derive(Debug)]
struct Cell {
    value: String,
    difference: String,
    class: &'static str,
}

/// A check of all sides.
#[derive(Debug)]
struct FindingRow {
    title: &'static str,
    counts: Vec<u64>,
    examples: Vec<String>,
}

/// When a side went wrong.
#[derive(Debug)]
struct Strip {
    label: String,
    marks: Vec<Mark>,
}

#[derive(Debug)]
struct Mark {
    x: String,
    width: String,
    y: String,
    height: String,
}

/// A bar of several parts.
#[derive(Debug)]
struct Bar {
    label: String,
    parts: Vec<Part>,
    says: String,
}

#[derive(Debug)]
struct Part {
    class: &'static str,
    x: String,
    width: String,
}

/// A percentile of all sides: response and service.
#[derive(Debug)]
struct Percentiles {
    at: String,
    values: Vec<(String, String)>,
}

impl<'a> Page<'a> {
    /// The page of a report.
    pub fn new(report: &'a Report) -> Self {
        let sides = &report.sides;
        Self {
            headline: headline(sides),
            workload: capital(&report.asked.workload),
            sides: (1..)
                .zip(sides)
                .map(|(side, report)| Card::of(side, report))
                .collect(),
            rows: ROWS
                .iter()
                .map(|(metric, title)| row(*metric, title, sides))
                .collect(),
            findings: findings(sides),
            spectrum: spectrum(sides),
            rates: over_time(
                sides,
                |value| format!("{}/s", short(value)),
                |slice| Some(slice.done),
            ),
            latencies: over_time(sides, tick_ms, |slice| slice.p99),
            strips: strips(sides),
            goods: goods(sides),
            times: times(sides),
            percentiles: percentiles(sides),
            has_repetitions: report.asked.schedules.len() > 1,
            has_schedule: report.asked.schedules.iter().any(Option::is_some),
            json: serde_json::to_string_pretty(report).unwrap_or_default(),
            report,
        }
    }
}

impl Page<'_> {
    /// All of it in one sentence.
    pub fn headline(&self) -> &str {
        &self.headline
    }
}

impl<'a> Card<'a> {
    fn of(side: usize, report: &'a SideReport) -> Self {
        let figure = |metric| {
            let value = report.figures.get(&metric);
            value.map_or_else(|| "–".to_owned(), |value| shown(metric, *value))
        };
        let (class, word) = match report.outcome {
            Outcome::NoneSeen => ("right", "none seen"),
            Outcome::Violated => ("wrong", "violated"),
            Outcome::NotExercised => ("open", "not exercised"),
            Outcome::Unknown => ("open", "unknown"),
        };
        Self {
            side,
            report,
            class,
            sign: sign(report.outcome),
            word,
            sentence: capital(&sentence(report)),
            goodput: figure(Metric::Goodput),
            p99: figure(Metric::P99),
            trips: report
                .time
                .map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time.trips)),
        }
    }
}

/// All of it in one sentence.
fn headline(sides: &[SideReport]) -> String {
    let of = |outcome: Outcome| -> Vec<&str> {
        let those = sides.iter().filter(|side| side.outcome == outcome);
        those.map(|side| side.label.as_str()).collect()
    };
    let mut parts = Vec::new();
    for side in sides
        .iter()
        .filter(|side| side.outcome == Outcome::Violated)
    {
        let (count, label) = (side.verdict.violations(), &side.label);
        let plural = if count == 1 { "" } else { "s" };
        parts.push(format!("{count} violation{plural} with {label}"));
    }
    let others = [
        (Outcome::NoneSeen, "none seen with"),
        (Outcome::NotExercised, "nobody met anybody with"),
        (Outcome::Unknown, "nothing certain is known of"),
    ];
    for (outcome, words) in others {
        let labels = of(outcome);
        if !labels.is_empty() {
            parts.push(format!("{words} {}", list(&labels)));
        }
    }
    let all = parts.join("; ");
    match all.strip_prefix("none seen") {
        Some(rest) => format!("No violation was seen{rest}."),
        None => format!("{}.", capital(&all)),
    }
}

fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// As much of a label as stands beside a chart.
fn brief(label: &str) -> String {
    if label.chars().count() <= LONGEST_LABEL {
        return label.to_owned();
    }
    let end: String = label
        .chars()
        .skip(label.chars().count() + 1 - LONGEST_LABEL)
        .collect();
    format!("…{end}")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn row(metric: Metric, title: &'static str, sides: &[SideReport]) -> Row {
    let cell = |side: &SideReport| {
        let value = side.figures.get(&metric);
        let compared = side.differences.get(&metric);
        Cell {
            value: value.map_or_else(|| "–".to_owned(), |value| shown(metric, *value)),
            difference: compared.map(difference).unwrap_or_default(),
            class: match compared.map(|compared| compared.verdict) {
                Some(Significance::Significant) => "significant",
                _ => "quiet",
            },
        }
    };
    Row {
        title,
        cells: sides.iter().map(cell).collect(),
    }
}

/// The checks that found anything, with the first examples of each.
fn findings(sides: &[SideReport]) -> Vec<FindingRow> {
    let row = |check: Check| {
        let of = |side: &SideReport| {
            side.verdict
                .findings
                .get(&check)
                .cloned()
                .unwrap_or_default()
        };
        let counts: Vec<u64> = sides.iter().map(|side| of(side).count).collect();
        let examples = sides.iter().flat_map(|side| {
            let examples = of(side).examples.into_iter();
            examples
                .map(|example| format!("{}: {example}", side.label))
                .take(3)
        });
        counts.iter().any(|count| *count > 0).then(|| FindingRow {
            title: check.title(),
            examples: examples.collect(),
            counts,
        })
    };
    Check::ALL.into_iter().filter_map(row).collect()
}

/// Latency over how rare it is: the axis runs from every second answer to one in ten thousand.
fn spectrum(sides: &[SideReport]) -> Chart {
    let rarity = |percent: f64| (100.0 / (100.0 - percent).max(f64::MIN_POSITIVE)).min(RAREST);
    let mut series = Vec::new();
    for (side, report) in (1..).zip(sides) {
        for (look, points) in [("service", &report.service), ("", &report.response)] {
            let points = points
                .iter()
                .map(|(percent, ms)| (rarity(*percent), Some(*ms)));
            series.push(Series {
                side,
                look,
                label: look.is_empty().then(|| brief(&report.label)),
                points: points.collect(),
            });
        }
    }
    let x = Scale::Log {
        least: 1.0,
        most: RAREST,
    };
    let y = Scale::log(values(&series));
    let ticks = [
        (1.0, "all"),
        (2.0, "50 %"),
        (10.0, "90 %"),
        (100.0, "99 %"),
        (1000.0, "99.9 %"),
        (RAREST, "99.99 %"),
    ];
    Chart::draw(
        x,
        &ticks.map(|(at, label)| (at, label.to_owned())),
        y,
        tick_ms,
        &series,
    )
}

fn over_time(
    sides: &[SideReport],
    tick: fn(f64) -> String,
    value: fn(&SliceReport) -> Option<f64>,
) -> Chart {
    let series: Vec<_> = (1..)
        .zip(sides)
        .map(|(side, report)| {
            let middle = |number: usize| (number as f64 + 0.5) * report.slice_s;
            let points = report.slices.iter().enumerate();
            Series {
                side,
                look: "",
                label: Some(brief(&report.label)),
                points: points
                    .map(|(number, slice)| (middle(number), value(slice)))
                    .collect(),
            }
        })
        .collect();
    let x = time_scale(sides);
    let ticks: Vec<_> = x.ticks_of_time();
    Chart::draw(x, &ticks, Scale::linear(values(&series)), tick, &series)
}

/// Milliseconds at an axis.
fn tick_ms(value: f64) -> String {
    if value >= 1000.0 {
        format!("{} s", short(value / 1000.0))
    } else {
        format!("{} ms", short(value))
    }
}

/// All of the measured time.
fn time_scale(sides: &[SideReport]) -> Scale {
    let ends = sides
        .iter()
        .map(|side| side.slices.len() as f64 * side.slice_s);
    Scale::Linear {
        most: ends.fold(1.0, f64::max),
    }
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> + Clone {
    series
        .iter()
        .flat_map(|series| series.points.iter().filter_map(|(_, y)| *y))
}

/// A strip for each side that went wrong: the more in a slice, the higher its mark.
fn strips(sides: &[SideReport]) -> Vec<Strip> {
    const STRIP: f64 = 26.0;
    let Scale::Linear { most: end } = time_scale(sides) else {
        return Vec::new();
    };
    let slices = || sides.iter().flat_map(|side| &side.slices);
    let most = slices().map(|slice| slice.wrong).fold(0.0, f64::max);
    let strip = |side: &SideReport| {
        let width = side.slice_s / end * WIDTH;
        let marks = side
            .slices
            .iter()
            .enumerate()
            .filter(|(_, slice)| slice.wrong > 0.0);
        Strip {
            label: brief(&side.label),
            marks: marks
                .map(|(number, slice)| {
                    let height = (slice.wrong / most * STRIP).max(3.0);
                    Mark {
                        x: coordinate(number as f64 * width),
                        width: coordinate((width - 1.0).max(1.0)),
                        y: coordinate(STRIP - height),
                        height: coordinate(height),
                    }
                })
                .collect(),
        }
    };
    if most == 0.0 {
        return Vec::new();
    }
    sides.iter().map(strip).collect()
}

/// Throughput, and what of it is right.
fn goods(sides: &[SideReport]) -> Vec<Bar> {
    let of = |side: &SideReport, metric| side.figures.get(&metric).copied();
    let all = sides.iter().filter_map(|side| of(side, Metric::Throughput));
    let most = all.fold(f64::MIN_POSITIVE, f64::max);
    let bar = |side: &SideReport| {
        let throughput = of(side, Metric::Throughput).unwrap_or(0.0);
        let goodput = of(side, Metric::Goodput);
        let right = goodput.unwrap_or(0.0) / most * BAR;
        let all = throughput / most * BAR;
        let rest = if goodput.is_some() {
            "wrong"
        } else {
            "unknown"
        };
        Bar {
            label: side.label.clone(),
            parts: vec![part("right", 0.0, right), part(rest, right, all - right)],
            says: match goodput {
                Some(goodput) if throughput - goodput < 0.05 => {
                    format!("{throughput:.1}/s, all of it right")
                }
                Some(goodput) => format!("{throughput:.1}/s, {goodput:.1} of it right"),
                None => format!("{throughput:.1}/s"),
            },
        }
    };
    sides.iter().map(bar).collect()
}

/// Where the time of an attempt goes.
fn times(sides: &[SideReport]) -> Vec<Bar> {
    let all = sides.iter().filter_map(|side| side.time);
    let most = all.map(|time| time.wait_ms + time.hold_ms.max(time.work_ms));
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let bar = |side: &SideReport| {
        let time = side.time?;
        let dots = |ms: f64| ms / most * BAR;
        let wait = dots(time.wait_ms);
        let work = dots(time.work_ms);
        let rest = dots((time.hold_ms - time.work_ms).max(0.0));
        Some(Bar {
            label: side.label.clone(),
            parts: vec![
                part("wait", 0.0, wait),
                part("hold", wait, rest),
                part("work", wait + rest, work),
            ],
            says: format!(
                "waits {}, holds {}, works {}; {:.1} requests to the lock system",
                milliseconds(time.wait_ms),
                milliseconds(time.hold_ms),
                milliseconds(time.work_ms),
                time.trips
            ),
        })
    };
    sides.iter().filter_map(bar).collect()
}

fn part(class: &'static str, x: f64, width: f64) -> Part {
    Part {
        class,
        x: coordinate(x),
        width: coordinate(width.max(0.0)),
    }
}

fn percentiles(sides: &[SideReport]) -> Vec<Percentiles> {
    let longest = sides
        .iter()
        .map(|side| side.response.len())
        .max()
        .unwrap_or(0);
    let row = |number: usize| {
        let at = sides.iter().find_map(|side| side.response.get(number))?.0;
        let of = |points: &[(f64, f64)]| {
            let value = points.get(number);
            value.map_or_else(|| "–".to_owned(), |(_, ms)| milliseconds(*ms))
        };
        Some(Percentiles {
            at: format!("{at} %"),
            values: sides
                .iter()
                .map(|side| (of(&side.response), of(&side.service)))
                .collect(),
        })
    };
    (0..longest).filter_map(row).collect()
}

/// How a threshold is told.
fn held(judged: &Judged) -> (&'static str, &'static str, &'static str) {
    match judged.holds {
        Holds::Yes => ("right", "✓", "holds"),
        Holds::No => ("wrong", "✗", "does not hold"),
        Holds::Unknown => ("open", "?", "cannot be decided"),
    }
}
