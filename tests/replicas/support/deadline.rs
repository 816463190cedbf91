//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// How long a test waits for what must happen, when nothing shorter is promised: long enough for a noisy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(15);

/// Looks until `probe` gives a value and returns it with the time it took; at the deadline it fails and tells the last reason.
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, mut probe: F) -> (T, Duration)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let start = Instant::now();
    loop {
        match probe().await {
            Ok(value) => return (value, start.elapsed()),
            Err(reason) if start.elapsed() >= limit => {
                panic!("{what}: not within {limit:?}; at last: {reason}")
            }
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// How many times the promise something may take here: a machine that tests everything at once is not a quiet one, and may
/// stand still for seconds.
const SLACK: u32 = 10;

/// Prints what was measured beside what is promised for a quiet machine, and fails only far beyond the promise.
#[track_caller]
pub fn promised(what: &str, promise: Duration, measured: Duration) {
    println!("{what}: {measured:.1?}, promised {promise:.1?}");
    assert!(
        measured <= promise * SLACK,
        "{what} took {measured:?}, more than {SLACK} times the promised {promise:?}"
    );
}

/// How many times a scenario of many runs is repeated: once, or ten times with `DOUBLEBOOK_SOAK=1`.
pub fn soak() -> usize {
    match std::env::var("DOUBLEBOOK_SOAK").as_deref() {
        Ok("") | Ok("0") | Err(_) => 1,
        Ok(_) => 10,
    }
}
