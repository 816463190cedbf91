//! How long answers took, and what they were: for each side, over all and slice by slice.
//!
//! Latencies are in high-dynamic-range histograms that are added up, never averaged. They resolve 1 µs and three
//! digits over all, two digits in a slice. Response time counts from when the request should have been sent, service
//! time from when it was; their gap is what a generator that waits for answers would hide.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::client::FailureKind;

/// A start that is later than this is a late one. The system wakes a sleeper up to a millisecond late.
pub const LATE: Duration = Duration::from_millis(10);

/// How many slices the measured time is cut into at most.
const MOST_SLICES: u64 = 120;

/// Digits that are resolved over all, and in a slice.
const DIGITS: (u8, u8) = (3, 2);

/// What an attempt was answered, and how long it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When it should have begun, from the start of what is measured.
    pub at: Duration,
    /// From when it should have been sent to the end of the answer.
    pub response: Duration,
    /// From when it was sent to the end of the answer.
    pub service: Duration,
    /// What came of it.
    pub outcome: Outcome,
    /// What the replica told of its time.
    pub timing: Option<Timing>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused, by the last word of the problem's type.
    Refused(String),
    /// It was answered, and may have been done.
    Unclear(String),
    /// There was no whole answer.
    Failed(FailureKind),
}

/// `Server-Timing` of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// Milliseconds of waiting for locks.
    pub wait: f64,
    /// Milliseconds from the grant to the commit's result.
    pub hold: f64,
    /// Milliseconds from the first read to the commit's result.
    pub work: f64,
    /// Requests to the lock system.
    pub trips: u64,
}

/// Sums of what answers told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// How many answers told it.
    pub answers: u64,
    /// All of it.
    pub sum: Timing,
}

/// A part of the measured time.
#[derive(Debug, Clone)]
pub struct Slice {
    /// Response times, in microseconds.
    pub response: Histogram<u64>,
    /// Attempts that were done.
    pub done: u64,
    /// Attempts that were refused.
    pub refused: u64,
    /// Attempts without a whole answer, or with one that leaves open what happened.
    pub failed: u64,
    /// Attempts that were acknowledged wrongly, as the check found.
    pub wrong: u64,
    /// How long of it was driven, over all repetitions.
    pub driven: Duration,
}

/// All that is measured of one side.
#[derive(Debug, Clone)]
pub struct Measures {
    /// Response times, in microseconds.
    pub response: Histogram<u64>,
    /// Service times, in microseconds.
    pub service: Histogram<u64>,
    /// How long a slice is.
    pub slice: Duration,
    /// The measured time, slice by slice.
    pub slices: Vec<Slice>,
    /// Attempts that were done.
    pub done: u64,
    /// How often each refusal was heard.
    pub refused: BTreeMap<String, u64>,
    /// How often each unclear answer was heard.
    pub unclear: BTreeMap<String, u64>,
    /// How often each failure was met.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Attempts that began later than they should have.
    pub late: u64,
    /// Attempts that were due and never begun.
    pub not_begun: u64,
    /// Where the time went, as the replicas tell it.
    pub timings: Timings,
    /// How long it was driven, until the last answer.
    pub elapsed: Duration,
}

impl Measures {
    /// For so much measured time.
    pub fn new(duration: Duration) -> Self {
        let seconds = duration.as_secs_f64() / MOST_SLICES as f64;
        Self {
            response: histogram(DIGITS.0),
            service: histogram(DIGITS.0),
            slice: Duration::from_secs(seconds.ceil().max(1.0) as u64),
            slices: Vec::new(),
            done: 0,
            refused: BTreeMap::new(),
            unclear: BTreeMap::new(),
            failed: BTreeMap::new(),
            late: 0,
            not_begun: 0,
            timings: Timings::default(),
            elapsed: Duration::ZERO,
        }
    }

    /// Counts one attempt.
    pub fn record(&mut self, sample: &Sample) {
        let slice = self.slice_at(sample.at);
        match &sample.outcome {
            Outcome::Done => slice.done += 1,
            Outcome::Refused(_) => slice.refused += 1,
            Outcome::Unclear(_) | Outcome::Failed(_) => slice.failed += 1,
        }
        // A connection that is refused at once is no fast answer; one that was waited for in vain took at least as long.
        let is_answer = match sample.outcome {
            Outcome::Failed(kind) => kind == FailureKind::Timeout,
            _ => true,
        };
        if is_answer {
            record(&mut slice.response, sample.response);
            record(&mut self.response, sample.response);
            record(&mut self.service, sample.service);
        }
        match &sample.outcome {
            Outcome::Done => self.done += 1,
            Outcome::Refused(why) => *self.refused.entry(why.clone()).or_default() += 1,
            Outcome::Unclear(why) => *self.unclear.entry(why.clone()).or_default() += 1,
            Outcome::Failed(kind) => *self.failed.entry(*kind).or_default() += 1,
        }
        if sample.response.saturating_sub(sample.service) > LATE {
            self.late += 1;
        }
        if let Some(timing) = sample.timing {
            self.timings.add(timing);
        }
    }

    /// Counts attempts that were acknowledged wrongly, by when they began in the measured time.
    pub fn record_wrong(&mut self, at_ns: &[u64]) {
        for at_ns in at_ns {
            self.slice_at(Duration::from_nanos(*at_ns)).wrong += 1;
        }
    }

    /// Counts a part of the measured time as driven.
    pub fn drove(&mut self, part: Range<Duration>) {
        let mut at = part.start;
        while at < part.end {
            let index = at.as_nanos() / self.slice.as_nanos().max(1);
            let index = usize::try_from(index)
                .unwrap_or(usize::MAX)
                .min(MOST_SLICES as usize);
            let ends = self.slice * u32::try_from(index + 1).unwrap_or(u32::MAX);
            let until = if index == MOST_SLICES as usize {
                part.end
            } else {
                part.end.min(ends)
            };
            self.slice(index).driven += until - at;
            at = until;
        }
    }

    /// Both together: histograms are added up.
    pub fn add(&mut self, other: &Self) {
        add_histogram(&mut self.response, &other.response);
        add_histogram(&mut self.service, &other.service);
        for (index, theirs) in other.slices.iter().enumerate() {
            let mine = self.slice(index);
            add_histogram(&mut mine.response, &theirs.response);
            mine.done += theirs.done;
            mine.refused += theirs.refused;
            mine.failed += theirs.failed;
            mine.wrong += theirs.wrong;
            mine.driven += theirs.driven;
        }
        self.done += other.done;
        add_counts(&mut self.refused, &other.refused);
        add_counts(&mut self.unclear, &other.unclear);
        add_counts(&mut self.failed, &other.failed);
        self.late += other.late;
        self.not_begun += other.not_begun;
        self.timings.answers += other.timings.answers;
        self.timings.sum.add(other.timings.sum);
        self.elapsed += other.elapsed;
    }

    /// Attempts that had an answer or failed.
    pub fn ended(&self) -> u64 {
        self.done + self.refused() + self.failed()
    }

    /// Attempts that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Attempts without a whole answer, or with one that leaves open what happened.
    pub fn failed(&self) -> u64 {
        self.failed.values().chain(self.unclear.values()).sum()
    }

    fn slice_at(&mut self, at: Duration) -> &mut Slice {
        let index = at.as_nanos() / self.slice.as_nanos().max(1);
        self.slice(usize::try_from(index).unwrap_or(usize::MAX))
    }

    fn slice(&mut self, index: usize) -> &mut Slice {
        // What comes after the end belongs to the last slice.
        let index = index.min(MOST_SLICES as usize);
        if self.slices.len() <= index {
            self.slices.resize_with(index + 1, Slice::new);
        }
        &mut self.slices[index]
    }
}

impl Slice {
    fn new() -> Self {
        Self {
            response: histogram(DIGITS.1),
            done: 0,
            refused: 0,
            failed: 0,
            wrong: 0,
            driven: Duration::ZERO,
        }
    }
}

impl Timings {
    fn add(&mut self, timing: Timing) {
        self.answers += 1;
        self.sum.add(timing);
    }
}

impl Timing {
    /// Reads `wait;dur=1.5, hold;dur=2, work;dur=2, trips;desc="2"`; none if it tells none of it.
    pub fn parse(header: &str) -> Option<Self> {
        let mut timing = Self::default();
        let mut is_told = false;
        for metric in header.split(',') {
            let Some((name, value)) = metric.split_once(';') else {
                continue;
            };
            let value = value.trim().split_once('=').map_or("", |(_, value)| value);
            let value = value.trim_matches('"');
            let milliseconds = || value.parse::<f64>().ok().filter(|ms| ms.is_finite());
            match name.trim() {
                "wait" => timing.wait = milliseconds()?,
                "hold" => timing.hold = milliseconds()?,
                "work" => timing.work = milliseconds()?,
                "trips" => timing.trips = value.parse().ok()?,
                _ => continue,
            }
            is_told = true;
        }
        is_told.then_some(timing)
    }

    fn add(&mut self, other: Self) {
        self.wait += other.wait;
        self.hold += other.hold;
        self.work += other.work;
        self.trips += other.trips;
    }
}

/// A percentile in milliseconds; none where nothing was recorded.
pub fn percentile(of: &Histogram<u64>, percent: f64) -> Option<f64> {
    (!of.is_empty()).then(|| of.value_at_percentile(percent) as f64 / 1000.0)
}

/// A histogram that grows with what it holds.
#[expect(
    clippy::expect_used,
    reason = "hdrhistogram takes 0 to 5 digits, and these are constants"
)]
fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).expect("between 0 and 5 digits")
}

fn add_histogram(to: &mut Histogram<u64>, other: &Histogram<u64>) {
    // It grows as it must, so there is nothing that does not fit.
    let _ = to.add(other);
}

fn add_counts<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (key, count) in other {
        *to.entry(key.clone()).or_default() += count;
    }
}

/// In microseconds. A histogram grows as it must; what no histogram can hold is nothing that anybody waited for.
fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let _ = histogram.record(micros);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, response_ms: u64, outcome: Outcome) -> Sample {
        Sample {
            at: Duration::from_millis(at_ms),
            response: Duration::from_millis(response_ms),
            service: Duration::from_millis(response_ms.min(5)),
            outcome,
            timing: None,
        }
    }

    #[test]
    fn merged_histograms_are_those_of_all_samples() {
        let (mut one, mut other) = (measures(), measures());
        let mut both = measures();
        for number in 1..=1000 {
            let sample = sample(number, number, Outcome::Done);
            both.record(&sample);
            if number % 3 == 0 {
                &mut one
            } else {
                &mut other
            }
            .record(&sample);
        }
        one.add(&other);
        assert_eq!(one.response, both.response);
        assert_eq!(one.done, 1000);
        assert_eq!(percentile(&one.response, 50.0).unwrap().round(), 500.0);
    }

    #[test]
    fn only_a_timeout_counts_as_a_long_answer() {
        let mut measures = measures();
        measures.record(&sample(0, 1, Outcome::Failed(FailureKind::Refused)));
        assert!(percentile(&measures.response, 50.0).is_none());
        measures.record(&sample(0, 900, Outcome::Failed(FailureKind::Timeout)));
        assert!(percentile(&measures.response, 50.0).unwrap() > 890.0);
        assert_eq!(measures.failed(), 2);
        assert_eq!(measures.refused(), 0);
    }

    #[test]
    fn a_late_start_is_counted_and_is_part_of_the_response_only() {
        let mut measures = measures();
        measures.record(&sample(0, 5, Outcome::Done));
        measures.record(&sample(0, 500, Outcome::Done));
        assert_eq!(measures.late, 1);
        assert!(measures.response.max() > 490_000 && measures.service.max() < 6_000);
    }

    #[test]
    fn what_was_driven_of_each_slice_is_known() {
        let s = Duration::from_secs;
        // Slices of 3 s.
        let mut measures = Measures::new(s(250));
        measures.drove(s(0)..s(250));
        measures.drove(s(248)..s(250));
        let driven: Vec<_> = measures.slices.iter().map(|slice| slice.driven).collect();
        assert_eq!(driven.len(), 84);
        assert!(
            driven[..82].iter().all(|slice| *slice == s(3)),
            "{driven:?}"
        );
        assert_eq!(driven[82..], [s(4), s(2)]);
        measures.add(&measures.clone());
        assert_eq!(measures.slices[83].driven, s(4));
    }

    #[test]
    fn long_runs_have_longer_slices_and_not_more() {
        let mut hour = Measures::new(Duration::from_secs(3600));
        hour.record(&sample(3_599_000, 1, Outcome::Done));
        hour.record(&sample(9_999_000, 1, Outcome::Done));
        assert_eq!(hour.slice, Duration::from_secs(30));
        assert!(hour.slices.len() <= 121);
    }

    #[test]
    fn server_timing_is_read_and_what_is_none_is_not() {
        let header = r#"wait;dur=1.5, hold;dur=20.25, work;dur=20, trips;desc="3", x;dur=1"#;
        let timing = Timing::parse(header).unwrap();
        assert_eq!(
            (timing.wait, timing.hold, timing.work, timing.trips),
            (1.5, 20.25, 20.0, 3)
        );
        for wrong in ["", "x", "cache;dur=1", "wait;dur=x", "wait", "wait;dur=inf"] {
            assert_eq!(Timing::parse(wrong), None, "{wrong}");
        }
    }

    fn measures() -> Measures {
        Measures::new(Duration::from_secs(10))
    }
}
