//! What is shown in a terminal while it runs, on standard error: bars, or plain lines where it is none.
//!
//! Its figures are of the moment. What counts is said at the end.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::{JoinHandle, spawn_blocking};

use super::report::milliseconds;
use super::settings::Settings;
use super::watch::{Moment, SideNow, Watch};

/// How often bars are drawn.
const DRAW: Duration = Duration::from_millis(250);

/// How often lines are written.
const LINE: Duration = Duration::from_secs(5);

/// A side as a bar.
const BAR: &str = "{prefix} {bar:16.blue} {percent:>3} %  {msg}";

/// Shows a run until it is over, or this is dropped. From a thread of its own: a terminal that is slow, or stopped,
/// must not delay a request.
#[derive(Debug)]
pub struct Live {
    /// Dropped at the end.
    over: Sender<()>,
    task: JoinHandle<()>,
}

/// What was shown before.
struct Shown {
    total: Duration,
    repetitions: u32,
    repetition: u32,
    bars: Option<MultiProgress>,
    /// The bars of this repetition, by their sides.
    of_sides: HashMap<String, ProgressBar>,
    /// What each side had done, and when it was looked at.
    before: HashMap<String, u64>,
    last: Instant,
}

impl Live {
    /// Begins to show what is watched.
    pub fn start(settings: &Settings, watch: Arc<Watch>) -> Self {
        let bars = std::io::stderr()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        let mut shown = Shown {
            total: settings.driven(),
            repetitions: settings.repeat,
            repetition: 0,
            bars,
            of_sides: HashMap::new(),
            before: HashMap::new(),
            last: Instant::now(),
        };
        let (over, is_over) = mpsc::channel();
        let task = spawn_blocking(move || {
            let pause = if shown.bars.is_some() { DRAW } else { LINE };
            while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                if let Some(moment) = watch.now() {
                    shown.shows(&moment);
                }
            }
            shown.ends();
        });
        Self { over, task }
    }

    /// Ends the view; what it showed last stays.
    pub async fn ends(self) {
        drop(self.over);
        // A view that failed is no reason to lose the report.
        let _ = self.task.await;
    }
}

impl Shown {
    fn shows(&mut self, moment: &Moment) {
        if moment.repetition != self.repetition {
            self.begins(moment.repetition);
        }
        let since = self.last.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        self.last = Instant::now();
        let width = moment
            .sides
            .iter()
            .map(|side| side.label.chars().count())
            .max();
        for side in &moment.sides {
            let before = self
                .before
                .insert(side.label.clone(), side.done)
                .unwrap_or(0);
            let rate = side.done.saturating_sub(before) as f64 / since;
            let label = format!("{:<width$}", side.label, width = width.unwrap_or(0));
            self.shows_side(side, label, in_words(side, rate));
        }
    }

    fn begins(&mut self, repetition: u32) {
        self.ends();
        self.repetition = repetition;
        self.before.clear();
        if self.repetitions > 1 {
            tell(&format!("repetition {repetition} of {}", self.repetitions));
        }
    }

    fn shows_side(&mut self, side: &SideNow, label: String, words: String) {
        let Some(bars) = &self.bars else {
            return tell(&format!(
                "{:>4.0} s  {label}  {words}",
                side.elapsed.as_secs_f64()
            ));
        };
        let total = milliseconds_of(self.total);
        let bar = self
            .of_sides
            .entry(side.label.clone())
            .or_insert_with(|| bars.add(ProgressBar::new(total).with_style(style())));
        bar.set_prefix(label);
        bar.set_position(milliseconds_of(side.elapsed));
        bar.set_message(words);
    }

    fn ends(&mut self) {
        for (_, bar) in self.of_sides.drain() {
            bar.abandon();
        }
    }
}

fn in_words(side: &SideNow, rate: f64) -> String {
    let latency = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), milliseconds);
    format!(
        "{rate:>6.0}/s done  p50 {:>8}  p99 {:>8}  refused {}  failed {}  sold twice so far {}",
        latency(side.p50),
        latency(side.p99),
        side.refused,
        side.failed,
        side.twice
    )
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━━ ")
}

fn milliseconds_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn tell(line: &str) {
    // Nobody listening is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}
