//! What is shown at the end: figures of each side, the difference to the first, verdicts and thresholds.
//!
//! The table, the JSON and the page are made from the one [`Report`], so that they cannot disagree.

mod chart;
mod page;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::check::{Outcome, Verdict};
use super::client::FailureKind;
use super::drive::Lane;
use super::generator::Used;
use super::measure::{Measures, percentile};
use super::settings::{Metric, Pace, Settings, Side, Threshold, Unit};
use super::statistics::{Difference, compare};

pub use page::Page;
pub use table::Table;

/// What of a slice must have been driven, at least, for its rate not to be made smaller.
const LEAST_OF_SLICE: f64 = 0.1;

/// More late starts than this make a run one in which the rate was not kept.
const LATE_SHARE: f64 = 0.01;

/// At which percentiles a latency spectrum is told: as far as a thousandth has a meaning, then decade by decade.
const SPECTRUM: [f64; 19] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9,
    99.95, 99.99, 100.0,
];

/// How the moment of a report is written.
const MADE: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

/// What is measured of a side, each by its name.
pub type Figures = BTreeMap<Metric, f64>;

/// A side and what is gathered of it over all repetitions.
#[derive(Debug)]
pub struct SideRun {
    /// What it is.
    pub side: Side,
    /// The switches of its room, as the replica says.
    pub switches: Map<String, Value>,
    /// All repetitions together.
    pub measures: Option<Measures>,
    /// All repetitions together.
    pub verdict: Verdict,
    /// Each repetition.
    pub runs: Vec<Figures>,
    /// Rooms that could not be removed.
    pub left: Vec<String>,
    sold_out: bool,
}

/// All that is told.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of the program.
    pub version: &'static str,
    /// When it was made, as `2026-02-03 04:05:06` UTC.
    pub made: String,
    /// What was asked for.
    pub asked: Asked,
    /// The sides, in their order.
    pub sides: Vec<SideReport>,
    /// What had to hold.
    pub thresholds: Vec<Judged>,
    /// What the generator used.
    pub generator: Used,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

/// What was asked for, in words.
#[derive(Debug, Serialize)]
pub struct Asked {
    /// The replicas.
    pub targets: Vec<String>,
    /// The workload.
    pub workload: String,
    /// The model, and how much of it.
    pub pace: String,
    /// Seconds that were measured, for each side and repetition.
    pub duration_s: f64,
    /// Seconds before that.
    pub warm_up_s: f64,
    /// How sides shared the time.
    pub order: String,
    /// The seed of the first repetition.
    pub seed: u64,
    /// How many repetitions there should be.
    pub repeat: u32,
    /// A fingerprint of the schedule of each repetition, the same for the same schedule; none of a closed model.
    pub schedules: Vec<Option<String>>,
}

/// One side.
#[derive(Debug, Serialize)]
pub struct SideReport {
    /// Its name.
    pub label: String,
    /// The switches of its room.
    pub switches: Map<String, Value>,
    /// What was seen.
    pub outcome: Outcome,
    /// All about what was right and wrong.
    pub verdict: Verdict,
    /// Over all repetitions.
    pub figures: Figures,
    /// Each repetition.
    pub runs: Vec<Figures>,
    /// How it differs from the first side; nothing of the first itself.
    pub differences: BTreeMap<Metric, Difference>,
    /// How often each refusal was heard.
    pub refused: BTreeMap<String, u64>,
    /// How often an answer left open what had happened.
    pub unclear: BTreeMap<String, u64>,
    /// How often each failure was met.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Where the time of an attempt went, on average, as the replicas tell it; none when they did not.
    pub time: Option<WhereTimeGoes>,
    /// Percentile and milliseconds of response times.
    pub response: Vec<(f64, f64)>,
    /// The same of service times.
    pub service: Vec<(f64, f64)>,
    /// Seconds of a slice.
    pub slice_s: f64,
    /// The measured time, slice by slice, over all repetitions.
    pub slices: Vec<SliceReport>,
}

/// Where the time of an attempt goes, on average.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WhereTimeGoes {
    /// Milliseconds of waiting for locks.
    pub wait_ms: f64,
    /// Milliseconds from the grant to the commit's result.
    pub hold_ms: f64,
    /// Milliseconds from the first read to the commit's result.
    pub work_ms: f64,
    /// Requests to the lock system.
    pub trips: f64,
}

/// A part of the measured time.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SliceReport {
    /// Attempts that were done, per second.
    pub done: f64,
    /// Attempts that were refused, per second.
    pub refused: f64,
    /// Attempts without an answer, per second.
    pub failed: f64,
    /// The median response time in milliseconds.
    pub p50: Option<f64>,
    /// Its 99th percentile.
    pub p99: Option<f64>,
    /// Attempts that were acknowledged wrongly, per second.
    pub wrong: f64,
}

/// A threshold at the end.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// As it was typed.
    pub threshold: String,
    /// The side that was looked at.
    pub side: String,
    /// What was measured.
    pub value: Option<f64>,
    /// Whether it holds.
    pub holds: Holds,
}

/// Whether a threshold holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It does.
    Yes,
    /// It cannot be said: nothing was measured, or nobody met anybody.
    Unknown,
    /// It does not.
    No,
}

impl Holds {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl SideRun {
    /// A side of which nothing is known yet.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            switches: Map::new(),
            measures: None,
            verdict: Verdict::default(),
            runs: Vec::new(),
            left: Vec::new(),
            sold_out: false,
        }
    }

    /// Adds a repetition.
    pub fn add(&mut self, lane: &Lane, verdict: Verdict) {
        let mut recorded = lane.recorded();
        recorded.measures.record_wrong(&verdict.wrong_measured_ns);
        self.switches.clone_from(&lane.room().switches);
        self.runs.push(figures(&recorded.measures, &verdict));
        self.verdict.add(&verdict);
        self.sold_out |= recorded.sold_out.is_some();
        match &mut self.measures {
            Some(measures) => measures.add(&recorded.measures),
            None => self.measures = Some(recorded.measures.clone()),
        }
    }

    fn figures(&self) -> Figures {
        let of = |measures| figures(measures, &self.verdict);
        self.measures.as_ref().map(of).unwrap_or_default()
    }

    fn report(self, first: &[Figures]) -> SideReport {
        let figures = self.figures();
        let measures = self.measures;
        let slice_s = measures
            .as_ref()
            .map_or(1.0, |measures| measures.slice.as_secs_f64());
        let spectrum = |of: fn(&Measures) -> &hdrhistogram::Histogram<u64>| -> Vec<(f64, f64)> {
            let Some(measures) = &measures else {
                return Vec::new();
            };
            let point = |at: f64| Some((at, percentile(of(measures), at)?));
            SPECTRUM.into_iter().filter_map(point).collect()
        };
        let (response, service) = (spectrum(|all| &all.response), spectrum(|all| &all.service));
        let slices = measures.iter().flat_map(|measures| &measures.slices);
        let slices = slices.map(|slice| {
            // A sliver of a slice is no base for a rate.
            let driven = slice.driven.as_secs_f64().max(slice_s * LEAST_OF_SLICE);
            let rate = |count: u64| count as f64 / driven;
            SliceReport {
                done: rate(slice.done),
                refused: rate(slice.refused),
                failed: rate(slice.failed),
                p50: percentile(&slice.response, 50.0),
                p99: percentile(&slice.response, 99.0),
                wrong: rate(slice.wrong),
            }
        });
        let slices = slices.collect();
        let time = measures.as_ref().and_then(WhereTimeGoes::of);
        let (refused, unclear, failed) = measures
            .map(|measures| (measures.refused, measures.unclear, measures.failed))
            .unwrap_or_default();
        SideReport {
            label: self.side.label,
            switches: self.switches,
            outcome: self.verdict.outcome(),
            verdict: self.verdict,
            differences: differences(first, &self.runs),
            figures,
            runs: self.runs,
            refused,
            unclear,
            failed,
            time,
            response,
            service,
            slice_s,
            slices,
        }
    }
}

impl WhereTimeGoes {
    fn of(measures: &Measures) -> Option<Self> {
        let timings = measures.timings;
        let answers = timings.answers as f64;
        (timings.answers > 0).then(|| Self {
            wait_ms: timings.sum.wait / answers,
            hold_ms: timings.sum.hold / answers,
            work_ms: timings.sum.work / answers,
            trips: timings.sum.trips as f64 / answers,
        })
    }
}

impl Report {
    /// Puts all of it together.
    pub fn new(
        settings: &Settings,
        sides: Vec<SideRun>,
        schedules: Vec<Option<String>>,
        generator: Used,
        interrupted: bool,
    ) -> Self {
        let notes = notes(settings, &sides, interrupted);
        let first = sides
            .first()
            .map(|side| side.runs.clone())
            .unwrap_or_default();
        let sides: Vec<_> = (0..)
            .zip(sides)
            .map(|(number, side)| side.report(if number == 0 { &[] } else { &first }))
            .collect();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            made: OffsetDateTime::now_utc().format(MADE).unwrap_or_default(),
            asked: Asked::of(settings, schedules),
            thresholds: judge(&settings.thresholds, &sides),
            sides,
            generator,
            interrupted,
            notes,
        }
    }

    /// 0: all thresholds hold; 1: one does not; 2: one cannot be decided, and none fails.
    pub fn exit_code(&self) -> u8 {
        match self.thresholds.iter().map(|judged| judged.holds).max() {
            None | Some(Holds::Yes) => 0,
            Some(Holds::No) => 1,
            Some(Holds::Unknown) => 2,
        }
    }
}

impl Asked {
    fn of(settings: &Settings, schedules: Vec<Option<String>>) -> Self {
        Self {
            targets: settings.asked().iter().map(ToString::to_string).collect(),
            workload: settings.workload.to_string(),
            pace: settings.pace.to_string(),
            duration_s: settings.duration.as_secs_f64(),
            warm_up_s: settings.warm_up.as_secs_f64(),
            order: match settings.interleave {
                None => "all sides at the same time".to_owned(),
                Some(turn) => format!("in turns of {turn:?}"),
            },
            seed: settings.seed,
            repeat: settings.repeat,
            schedules,
        }
    }
}

fn figures(measures: &Measures, verdict: &Verdict) -> Figures {
    let mut figures = Figures::new();
    let response = |percent| percentile(&measures.response, percent);
    let service = |percent| percentile(&measures.service, percent);
    let a_second = |count: u64| {
        let seconds = measures.elapsed.as_secs_f64();
        (seconds > 0.0).then(|| count as f64 / seconds)
    };
    let is_decided = verdict.undecided.is_empty();
    for metric in Metric::ALL {
        let value = match metric {
            Metric::P50 => response(50.0),
            Metric::P90 => response(90.0),
            Metric::P99 => response(99.0),
            Metric::P999 => response(99.9),
            Metric::Max => response(100.0),
            Metric::ServiceP50 => service(50.0),
            Metric::ServiceP99 => service(99.0),
            Metric::Throughput => a_second(measures.done),
            Metric::Goodput if is_decided => a_second(verdict.right_measured),
            Metric::Goodput => None,
            Metric::Violations if is_decided || !verdict.findings.is_empty() => {
                Some(verdict.violations() as f64)
            }
            Metric::Violations => None,
            Metric::Refused => Some(measures.refused() as f64),
            Metric::Failures => Some(measures.failed() as f64),
            Metric::Late => Some(measures.late as f64),
            Metric::Unsent => Some(measures.not_begun as f64),
        };
        figures.extend(value.map(|value| (metric, value)));
    }
    figures
}

fn differences(first: &[Figures], other: &[Figures]) -> BTreeMap<Metric, Difference> {
    let of = |metric| {
        let values = |runs: &[Figures]| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.get(&metric).copied()).collect()
        };
        Some((metric, compare(&values(first)?, &values(other)?)?))
    };
    Metric::ALL.into_iter().filter_map(of).collect()
}

fn judge(thresholds: &[Threshold], sides: &[SideReport]) -> Vec<Judged> {
    let mut all = Vec::new();
    for threshold in thresholds {
        let is_meant = |side: &&SideReport| {
            threshold
                .side
                .as_ref()
                .is_none_or(|name| *name == side.label)
        };
        all.extend(
            sides
                .iter()
                .filter(is_meant)
                .map(|side| judge_one(threshold, side)),
        );
    }
    all
}

fn judge_one(threshold: &Threshold, side: &SideReport) -> Judged {
    let value = side.figures.get(&threshold.metric).copied();
    let is_not_exercised =
        threshold.metric == Metric::Violations && side.outcome == Outcome::NotExercised;
    // What was seen of a room that could not be read whole is only the least.
    let is_the_least = threshold.metric == Metric::Violations && !side.verdict.undecided.is_empty();
    let holds = match value {
        None => Holds::Unknown,
        Some(_) if is_not_exercised => Holds::Unknown,
        Some(value) if is_the_least => match threshold.holds_from(value) {
            Some(holds) => Holds::of(holds),
            None => Holds::Unknown,
        },
        Some(value) => Holds::of(threshold.holds(value)),
    };
    Judged {
        threshold: threshold.text.clone(),
        side: side.label.clone(),
        value,
        holds,
    }
}

fn notes(settings: &Settings, sides: &[SideRun], interrupted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if interrupted {
        notes.push("It was stopped before its end: this is what there is.".to_owned());
    }
    let mut missed = Vec::new();
    for side in sides {
        let label = &side.side.label;
        if let Some(measures) = &side.measures
            && matches!(settings.pace, Pace::Open { .. })
            && (measures.late + measures.not_begun) as f64 > LATE_SHARE * measures.ended() as f64
        {
            missed.push(label.as_str());
        }
        if side.sold_out {
            notes.push(format!(
                "{label}: sold out before the end; nothing was asked after that, and that time does not count."
            ));
        }
        for room in &side.left {
            notes.push(format!("{label}: its room {room} could not be removed."));
        }
    }
    if !missed.is_empty() {
        notes.push(format!(
            "The generator did not keep the rate of {}: more than 1 % of the requests began over 10 ms late, or not at \
             all. The response times tell it. Ask for less, raise --in-flight, or use another machine.",
            missed.join(", ")
        ));
    }
    if sides.len() > 1 && settings.interleave.is_none() {
        notes.push(
            "The sides ran at the same time and shared the replicas, the database and this machine; --interleave \
             keeps them apart."
                .to_owned(),
        );
    }
    notes
}

/// A value with its unit, as people read it.
pub fn shown(metric: Metric, value: f64) -> String {
    match metric.unit() {
        Unit::Milliseconds => milliseconds(value),
        Unit::PerSecond => format!("{value:.1}/s"),
        Unit::Count => format!("{value:.0}"),
    }
}

/// Milliseconds with about three digits.
pub fn milliseconds(value: f64) -> String {
    match value {
        v if v >= 9950.0 => format!("{:.1} s", v / 1000.0),
        v if v >= 99.5 => format!("{v:.0} ms"),
        v if v >= 9.95 => format!("{v:.1} ms"),
        v => format!("{v:.2} ms"),
    }
}
