//! What is counted and measured here, as Prometheus reads it.
//!
//! Promises: few series, whatever people do. Labels are the kind of an attempt, its outcome and its lock system;
//! never a room, a buyer or a seat. Times are seconds. Does not promise one moment: each number is right by itself.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{
    EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::app::App;
use crate::lock::LockName;
use crate::section::{End, Kind, Timing};

/// What all names begin with.
const PREFIX: &str = "doublebook";

/// Upper bounds in seconds, from a lock that is free to the longest wait.
const BUCKETS: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// The end of an attempt that a token refused.
const STALE_TOKEN: &str = "stale-token";

/// The metrics of this replica.
#[derive(Debug)]
pub struct Metrics {
    catalogue: Catalogue,
    attempts: Family<Ended, Counter>,
    wait: Times,
    hold: Times,
    work: Times,
    leases_lost: Family<Under, Counter>,
    tokens_refused: Family<Under, Counter>,
    waiters: Family<Under, Gauge>,
    held: Family<Under, Gauge>,
    under_way: Gauge,
    leases_left: Gauge,
    readers: Gauge,
}

type Times = Family<Under, Histogram, Seconds>;

/// How an attempt of which kind ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    kind: Kind,
    outcome: String,
}

/// Under which lock system; none with locking off, and where an attempt ended before its room was known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Under {
    lock: Lock,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lock(Option<LockName>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

impl EncodeLabelValue for Lock {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        self.0.map_or("none", LockName::as_str).encode(encoder)
    }
}

impl EncodeLabelValue for Kind {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

/// Makes a histogram of seconds.
#[derive(Debug, Clone, Copy)]
struct Seconds;

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Catalogue::default();
        let build: Family<Build, Gauge> = all.metric("build_info", "The version that runs");
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&Build { version }).set(1);
        Self {
            attempts: all.metric("attempts", "Attempts that ended, by kind and outcome"),
            wait: all.times(
                "wait",
                "Time that an attempt waited for its locks, by lock system",
            ),
            hold: all.times(
                "hold",
                "Time from the grant of all locks to the result of the commit, by lock system",
            ),
            work: all.times(
                "work",
                "Time from the first read to the result of the commit, by lock system",
            ),
            leases_lost: all.metric(
                "leases_lost",
                "Leases that were over before they were given back, by lock system",
            ),
            tokens_refused: all.metric(
                "tokens_refused",
                "Attempts that ended in stale-token, by lock system",
            ),
            waiters: all.metric("lock_waiters", "Acquisitions under way now, by lock system"),
            held: all.metric("locks_held", "Acquisitions held now, by lock system"),
            under_way: all.metric("attempts_under_way", "Attempts under way now"),
            leases_left: all.metric(
                "leases_left",
                "Leases of ended attempts that may still stand",
            ),
            readers: all.metric("stream_readers", "Event streams open now"),
            catalogue: all,
        }
    }
}

/// What there is, for Prometheus and for the documents.
#[derive(Debug)]
struct Catalogue {
    registry: Registry,
    described: Vec<Described>,
}

/// A metric, as it is documented.
#[derive(Debug)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// What it counts or measures.
    pub help: &'static str,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            registry: Registry::with_prefix(PREFIX),
            described: Vec::new(),
        }
    }
}

impl Catalogue {
    fn metric<M: Metric + Clone + Default>(&mut self, name: &str, help: &'static str) -> M {
        let metric = M::default();
        self.registry.register(name, help, metric.clone());
        let kind = metric.metric_type();
        let suffix = if kind == MetricType::Counter {
            "_total"
        } else {
            ""
        };
        self.describe(kind, format!("{name}{suffix}"), help);
        metric
    }

    fn times(&mut self, name: &str, help: &'static str) -> Times {
        let times = Times::new_with_constructor(Seconds);
        let registry = &mut self.registry;
        registry.register_with_unit(name, help, Unit::Seconds, times.clone());
        self.describe(MetricType::Histogram, format!("{name}_seconds"), help);
        times
    }

    fn describe(&mut self, kind: MetricType, name: String, help: &'static str) {
        self.described.push(Described {
            name: format!("{PREFIX}_{name}"),
            kind: kind.as_str().to_owned(),
            help,
        });
    }
}

impl Metrics {
    /// Counts an attempt that ended, and where its time went. A part of its way that it did not reach took no time.
    pub fn ended(&self, kind: Kind, lock: Option<LockName>, end: &End, timing: Timing) {
        let ended = Ended {
            kind,
            outcome: end.word.clone(),
        };
        self.attempts.get_or_create(&ended).inc();
        let under = under(lock);
        if end.word == STALE_TOKEN {
            self.tokens_refused.get_or_create(&under).inc();
        }
        observe(&self.wait, &under, timing.wait);
        observe(&self.hold, &under, timing.hold);
        observe(&self.work, &under, timing.work);
    }

    /// Counts a lease that was over before its attempt gave it back.
    pub fn lease_lost(&self, lock: LockName) {
        self.leases_lost.get_or_create(&under(Some(lock))).inc();
    }

    /// All metrics, also those that have counted nothing yet.
    pub fn described(&self) -> &[Described] {
        &self.catalogue.described
    }

    /// All of it, as text. What is there now is looked at now.
    ///
    /// # Errors
    /// None that a text can have.
    pub fn text(&self, app: &App) -> Result<String, fmt::Error> {
        self.look(app);
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.catalogue.registry)?;
        Ok(text)
    }

    fn look(&self, app: &App) {
        for service in app.locks.services() {
            let under = under(Some(service.name()));
            set(&self.waiters.get_or_create(&under), service.waiting());
            set(&self.held.get_or_create(&under), service.held());
        }
        set(&self.under_way, app.attempts.under_way());
        set(&self.readers, app.live.readers());
        self.leases_left.set(app.leases_left.total().cast_signed());
    }
}

fn under(lock: Option<LockName>) -> Under {
    Under { lock: Lock(lock) }
}

fn observe(times: &Times, under: &Under, time: Duration) {
    if !time.is_zero() {
        times.get_or_create(under).observe(time.as_secs_f64());
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}
