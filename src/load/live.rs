//! What is shown while it runs, on standard error: bars in a terminal, plain lines elsewhere.
//!
//! Its figures are of the moment. What counts is said at the end.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::drive::Lane;
use super::measure::percentile;
use super::report::{SideRun, milliseconds};
use super::settings::Settings;

/// How often a bar is drawn.
const DRAW: Duration = Duration::from_millis(250);

/// How often a line is written.
const LINE: Duration = Duration::from_secs(5);

/// How long a bar is, in characters.
const BAR: &str = "{prefix} {bar:16.blue} {percent:>3} %  {msg}";

/// Shows a repetition until it is over.
#[derive(Debug)]
pub struct Live {
    over: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// One side, as it is shown.
struct Shown {
    label: String,
    lane: Arc<Lane>,
    bar: Option<ProgressBar>,
    /// What it had done when it was looked at last.
    before: u64,
}

/// The figures of a moment.
struct Now {
    elapsed: Duration,
    rate: f64,
    refused: u64,
    failed: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    twice: u64,
}

impl Live {
    /// Begins to show these sides.
    pub fn start(
        settings: &Settings,
        repetition: u32,
        sides: &[SideRun],
        lanes: &[Arc<Lane>],
    ) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bars =
            is_terminal.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        let width = sides
            .iter()
            .map(|side| side.side.label.chars().count())
            .max()
            .unwrap_or(0);
        let total = settings.driven();
        let shown = sides.iter().zip(lanes).map(|(side, lane)| Shown {
            label: format!("{:<width$}", side.side.label),
            lane: Arc::clone(lane),
            bar: bars.as_ref().map(|bars| bar(bars, total)),
            before: 0,
        });
        let shown: Vec<_> = shown.collect();
        if settings.repeat > 1 {
            tell(format!("repetition {repetition} of {}", settings.repeat));
        }
        let over = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(show(shown, over.clone())));
        Self { over, task }
    }

    /// Shows it a last time.
    pub async fn ends(self) {
        self.over.cancel();
        // A view that failed is no reason to lose the report.
        let _ = self.task.await;
    }
}

async fn show(mut sides: Vec<Shown>, over: CancellationToken) {
    let every = if sides.iter().any(|side| side.bar.is_some()) {
        DRAW
    } else {
        LINE
    };
    let mut ticks = interval(every);
    ticks.tick().await;
    let mut last = Instant::now();
    loop {
        let is_over = tokio::select! {
            _ = ticks.tick() => false,
            () = over.cancelled() => true,
        };
        let since = last.elapsed();
        last = Instant::now();
        for side in &mut sides {
            side.shows(since, is_over);
        }
        if is_over {
            return;
        }
    }
}

impl Shown {
    fn shows(&mut self, since: Duration, is_over: bool) {
        let now = self.looks(since);
        let Some(bar) = &self.bar else {
            return tell(format!(
                "{:>4.0} s  {}  {now}",
                now.elapsed.as_secs_f64(),
                self.label
            ));
        };
        bar.set_prefix(self.label.clone());
        bar.set_position(u64::try_from(now.elapsed.as_millis()).unwrap_or(u64::MAX));
        bar.set_message(now.to_string());
        if is_over {
            bar.abandon();
        }
    }

    fn looks(&mut self, since: Duration) -> Now {
        let recorded = self.lane.recorded();
        let measures = &recorded.measures;
        let done = measures.done;
        let now = Now {
            elapsed: recorded.latest(),
            rate: done.saturating_sub(self.before) as f64
                / since.as_secs_f64().max(f64::MIN_POSITIVE),
            refused: measures.refused(),
            failed: measures.failed(),
            p50: percentile(&measures.response, 50.0),
            p99: percentile(&measures.response, 99.0),
            twice: recorded.twice,
        };
        drop(recorded);
        self.before = done;
        now
    }
}

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), milliseconds);
        write!(
            f,
            "{:>6.0}/s done  p50 {:>8}  p99 {:>8}  refused {}  failed {}  sold twice so far {}",
            self.rate,
            latency(self.p50),
            latency(self.p99),
            self.refused,
            self.failed,
            self.twice
        )
    }
}

fn bar(bars: &MultiProgress, total: Duration) -> ProgressBar {
    let total = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    bars.add(ProgressBar::new(total).with_style(style.progress_chars("━━ ")))
}

fn tell(line: String) {
    // Nobody listening is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}
