//! What the generator itself takes and used up: one that is busy measures itself.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

/// How many threads send. One sends a hundred thousand requests a second, so a quarter of the processors are plenty, and
/// the others are left to what is measured; threads that have little to do wake each other for nothing. (One instead of
/// two made 4 % more bookings on two processors.)
pub fn threads() -> usize {
    processors().div_ceil(4)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What the generator used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Used {
    /// Processor time, in seconds.
    pub cpu_seconds: f64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How many processors there are.
    pub processors: usize,
}

/// Measures what is used from a beginning on.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    began: Instant,
    cpu: Duration,
}

impl Usage {
    /// From now on.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            cpu: cpu(),
        }
    }

    /// Until now.
    pub fn ends(self) -> Used {
        Used {
            cpu_seconds: cpu().saturating_sub(self.cpu).as_secs_f64(),
            seconds: self.began.elapsed().as_secs_f64(),
            processors: processors(),
        }
    }
}

impl Used {
    /// Its share of all processors, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.cpu_seconds / self.seconds.max(f64::MIN_POSITIVE) / self.processors as f64
    }
}

/// Processor time of this process so far; zero where the system does not tell it.
fn cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return Duration::ZERO;
    };
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros =
        |seconds: i64, micros: i64| seconds.saturating_mul(1_000_000).saturating_add(micros);
    let used = micros(user.tv_sec(), user.tv_usec())
        .saturating_add(micros(system.tv_sec(), system.tv_usec()));
    Duration::from_micros(used.unsigned_abs())
}
