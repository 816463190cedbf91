//! `doublebook load`: drives replicas, side by side, and says how fast and how right they were.
//!
//! Exit codes: 0 all thresholds hold, 1 one does not, 2 one cannot be decided or there is no report, 64 a wrong
//! setting.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use askama::Template;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;

use super::stop::StopSignals;
use super::{UsageError, say};
pub use crate::load::generator::threads;
use crate::load::history::History;
use crate::load::report::{Page, Report, Table};
use crate::load::schedule::{Goods, Workload};
use crate::load::settings::{self, MOST_SIDES, Pace, Settings, Side, Sides, Target, Threshold};
use crate::load::watch::Watch;
use crate::load::{self, Live, Ran, RunError};

/// A wrong setting, as `sysexits.h` counts.
pub const USAGE: u8 = 64;

/// There is no report, so nothing is known.
const UNKNOWN: u8 = 2;

/// How a shell names the end by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// What is sent each second unless it is said.
const RATE: f64 = 100.0;

/// The most that can be asked for.
const MOST_RATE: f64 = 100_000.0;

/// Drives replicas, side by side, and says how fast and how right they were.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// A replica to ask (repeat it for more); they are asked in turn
    #[arg(
        long,
        env = "DOUBLEBOOK_LOAD_TARGET",
        value_delimiter = ';',
        default_value = "http://127.0.0.1:3001",
        value_name = "URL"
    )]
    pub target: Vec<Target>,

    /// What to compare: switches, or a target, such as 'locking=off' or 'lock=redis' (repeat it, at most 8)
    #[arg(
        long,
        env = "DOUBLEBOOK_LOAD_SIDE",
        value_delimiter = ';',
        value_name = "SIDE"
    )]
    pub side: Vec<Side>,

    /// Compare locking off and every lock system that the replicas have, in turns
    #[arg(long, env = "DOUBLEBOOK_LOAD_ALL_LOCKS", value_parser = FalseyValueParser::new(), conflicts_with = "side")]
    pub all_locks: bool,

    /// What is wanted
    #[arg(
        long,
        env = "DOUBLEBOOK_LOAD_WORKLOAD",
        value_enum,
        default_value = "mixed"
    )]
    pub workload: GoodsArg,

    /// How many seats each wave of buyers crowds on; 0 gives each buyer a seat of their own
    #[arg(long, env = "DOUBLEBOOK_LOAD_HOT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub hot: u32,

    /// How many wallets there are
    #[arg(long, env = "DOUBLEBOOK_LOAD_WALLETS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub wallets: u32,

    /// Requests a second on average, sent when their time has come [default: 100]
    #[arg(long, env = "DOUBLEBOOK_LOAD_RATE", value_parser = rate, conflicts_with = "clients")]
    pub rate: Option<f64>,

    /// Clients that each wait for their answer before they ask again, instead of a rate
    #[arg(long, env = "DOUBLEBOOK_LOAD_CLIENTS", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub clients: Option<u16>,

    /// How long each side is measured
    #[arg(long, env = "DOUBLEBOOK_LOAD_DURATION", value_parser = settings::length, default_value = "10s")]
    pub duration: Duration,

    /// How long each side is driven before it is measured
    #[arg(long, env = "DOUBLEBOOK_LOAD_WARM_UP", value_parser = settings::length, default_value = "1s")]
    pub warm_up: Duration,

    /// Where the schedule comes from: the same seed gives the same one
    #[arg(long, env = "DOUBLEBOOK_LOAD_SEED", default_value_t = 1)]
    pub seed: u64,

    /// Let the sides take turns of this length, instead of running at the same time
    #[arg(long, env = "DOUBLEBOOK_LOAD_INTERLEAVE", value_parser = settings::length, num_args = 0..=1, default_missing_value = "2s", value_name = "TURN")]
    pub interleave: Option<Duration>,

    /// How often to do all of it, so that differences can be told from noise
    #[arg(long, env = "DOUBLEBOOK_LOAD_REPEAT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,

    /// Work between read and write, which opens the window for a race
    #[arg(long, env = "DOUBLEBOOK_LOAD_THINK", value_parser = settings::length)]
    pub think: Option<Duration>,

    /// How long an answer is waited for
    #[arg(long, env = "DOUBLEBOOK_LOAD_TIMEOUT", value_parser = settings::length, default_value = "10s")]
    pub timeout: Duration,

    /// How many requests of a side may be under way at once
    #[arg(long, env = "DOUBLEBOOK_LOAD_IN_FLIGHT", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub in_flight: u32,

    /// What must hold at the end, such as 'p99 < 200ms' or 'lock=redis: violations = 0' (repeat it for more)
    #[arg(
        long,
        env = "DOUBLEBOOK_LOAD_THRESHOLD",
        value_delimiter = ';',
        value_name = "RULE"
    )]
    pub threshold: Vec<Threshold>,

    /// Write the report for people here, as one HTML file
    #[arg(long, env = "DOUBLEBOOK_LOAD_REPORT", value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Write the report for machines here
    #[arg(long, env = "DOUBLEBOOK_LOAD_JSON", value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write all that was asked and answered here, as JSON lines
    #[arg(long, env = "DOUBLEBOOK_LOAD_HISTORY", value_name = "FILE")]
    pub history: Option<PathBuf>,
}

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GoodsArg {
    /// Seats are booked.
    Seats,
    /// Money is moved.
    Wallets,
    /// Both, half and half.
    Mixed,
}

/// Runs it and prints the table.
pub async fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    let files = Files::open(&settings)?;
    let stop = CancellationToken::new();
    let listens = tokio::spawn(stop_on_signals(stop.clone()));
    let watch = Arc::new(Watch::default());
    let live = Live::start(&settings, Arc::clone(&watch));
    let ran = load::run(&settings, &watch, &stop).await;
    live.ends().await;
    listens.abort();
    let Ran { report, histories } = match ran {
        Ok(ran) => ran,
        Err(RunError::Usage(line)) => return Err(UsageError::with_code(line, USAGE).into()),
        Err(RunError::Failed(line)) => return Err(UsageError::with_code(line, UNKNOWN).into()),
    };
    // First of all: whatever becomes of the files, this is not lost.
    say(Table(&report));
    files
        .fill(&report, &histories)
        .map_err(|error| UsageError::with_code(format!("{error:#}"), UNKNOWN))?;
    Ok(ExitCode::from(report.exit_code()))
}

impl LoadArgs {
    fn settings(self) -> Result<Settings, UsageError> {
        let usage = |line: &str| UsageError::with_code(line, USAGE);
        if self.side.len() > MOST_SIDES {
            return Err(usage(&format!(
                "--side can be given {MOST_SIDES} times at most"
            )));
        }
        let mut labels: Vec<_> = self.side.iter().map(|side| side.label.as_str()).collect();
        labels.sort_unstable();
        if labels.windows(2).any(|two| two[0] == two[1]) {
            return Err(usage("two of --side are the same"));
        }
        if self.duration.is_zero() {
            return Err(usage("--duration must be above 0"));
        }
        if self.timeout.is_zero() {
            return Err(usage("--timeout must be above 0"));
        }
        if self.interleave.is_some_and(|turn| turn < SHORTEST_TURN) {
            return Err(usage("--interleave must be at least 100ms"));
        }
        let interleave = if self.all_locks {
            self.interleave.or(Some(self.warm_up + self.duration))
        } else {
            self.interleave
        };
        let sides = match self.side {
            _ if self.all_locks => Sides::AllLocks,
            sides if sides.is_empty() => Sides::Given(vec![Side::plain()]),
            sides => Sides::Given(sides),
        };
        let pace = match self.clients {
            Some(clients) => Pace::Closed {
                clients: clients.into(),
            },
            None => Pace::Open {
                rate: self.rate.unwrap_or(RATE),
            },
        };
        Ok(Settings {
            targets: self.target,
            sides,
            workload: Workload {
                goods: self.workload.into(),
                hot: self.hot,
                wallets: self.wallets,
            },
            pace,
            warm_up: self.warm_up,
            duration: self.duration,
            seed: self.seed,
            interleave,
            repeat: self.repeat,
            think: self.think,
            timeout: self.timeout,
            in_flight: self.in_flight as usize,
            thresholds: self.threshold,
            report: self.report,
            json: self.json,
            history: self.history,
        })
    }
}

/// A turn must be longer than what ends it.
const SHORTEST_TURN: Duration = Duration::from_millis(100);

impl From<GoodsArg> for Goods {
    fn from(goods: GoodsArg) -> Self {
        match goods {
            GoodsArg::Seats => Self::Seats,
            GoodsArg::Wallets => Self::Wallets,
            GoodsArg::Mixed => Self::Mixed,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().unwrap_or(f64::NAN);
    if rate > 0.0 && rate <= MOST_RATE {
        return Ok(rate);
    }
    Err(format!(
        "must be a number of requests a second, above 0 and at most {MOST_RATE}"
    ))
}

/// The first Ctrl-C or SIGTERM ends the run with a report; the second one ends the program, and leaves the rooms.
async fn stop_on_signals(stop: CancellationToken) -> std::io::Result<()> {
    let mut signals = StopSignals::listen()?;
    loop {
        signals.received().await;
        if stop.is_cancelled() {
            std::process::exit(INTERRUPTED);
        }
        tracing::info!(
            "stopping: the report follows, once what is under way is answered; \
             Ctrl-C once more ends it at once, without a report, and leaves its rooms"
        );
        stop.cancel();
    }
}

/// Files are opened before anything is driven: a run of an hour must not end with a folder that is not there.
struct Files {
    report: Output,
    json: Output,
    history: Output,
}

/// A file that was asked for, or none.
struct Output(Option<Place>);

/// What stood there is kept until there is something to write: a run that fails must not take the last report with it.
struct Place {
    path: PathBuf,
    file: BufWriter<File>,
    /// Nothing stood there.
    made: bool,
    written: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.made && !self.written {
            // An empty file is no report.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Files {
    fn open(settings: &Settings) -> Result<Self, UsageError> {
        let files = Self {
            report: Output::open(settings.report.as_deref())?,
            json: Output::open(settings.json.as_deref())?,
            history: Output::open(settings.history.as_deref())?,
        };
        let mut known = HashSet::new();
        for output in [&files.report, &files.json, &files.history] {
            if output.file_id().is_some_and(|id| !known.insert(id)) {
                return Err(UsageError::with_code(
                    "two of --report, --json and --history name the same file",
                    USAGE,
                ));
            }
        }
        Ok(files)
    }

    fn fill(mut self, report: &Report, histories: &[History]) -> anyhow::Result<()> {
        for history in histories {
            self.history.write(|file| history.write(file))?;
        }
        self.json
            .write(|file| serde_json::to_writer_pretty(&mut *file, report).map_err(Into::into))?;
        self.report
            .write(|file| Page::new(report).write_into(file))?;
        for mut output in [self.report, self.json, self.history] {
            output.write(Write::flush)?;
        }
        Ok(())
    }
}

impl Output {
    fn open(path: Option<&Path>) -> Result<Self, UsageError> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let made = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| {
                UsageError::with_code(
                    format!("{} cannot be written: {error}", path.display()),
                    USAGE,
                )
            })?;
        Ok(Self(Some(Place {
            path: path.to_owned(),
            file: BufWriter::new(file),
            made,
            written: false,
        })))
    }

    /// Which file it is, by whatever name; none of a pipe or a device, which may be written to several times.
    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = self.0.as_ref()?.file.get_ref().metadata().ok()?;
        metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
    }

    fn write(
        &mut self,
        with: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(place) = &mut self.0 else {
            return Ok(());
        };
        place
            .write(with)
            .with_context(|| format!("{} cannot be written", place.path.display()))
    }
}

impl Place {
    fn write(
        &mut self,
        with: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        if !self.written && self.file.get_ref().metadata()?.is_file() {
            self.file.get_ref().set_len(0)?;
        }
        self.written = true;
        with(&mut self.file)
    }
}
