//! What was measured, in words: printed as it comes, and as a page.

use std::fmt::Write;
use std::time::Duration;

use super::free::Free;
use super::hot::Hot;
use super::systems::{REDIS, RSLOCK};

/// The parts of a page.
pub struct Report {
    machine: Vec<String>,
    systems: Vec<Measured>,
    verdicts: Vec<Verdict>,
}

struct Measured {
    name: &'static str,
    version: String,
    free: Option<Free>,
    hot: Option<Hot>,
}

/// A promise and what became of it.
struct Verdict {
    promise: String,
    measured: String,
    kept: bool,
}

/// The least part of the hand-offs of one task alone.
const LEAST_HAND_OFFS: f64 = 0.85;

/// The least and the most part of the grants that each process gets.
const FAIR_SHARES: (f64, f64) = (0.40, 0.60);

/// The longest wait of 99 in 100, in fair shares.
const LONGEST_WAIT: f64 = 3.0;

/// The same beside that of `rslock`.
const BESIDE_RSLOCK: f64 = 0.2;

/// Requests for a grant, however many wait: the ask that is granted, the ask of the next one in line, the release; and
/// a few of those who ask by themselves.
const MOST_REQUESTS: f64 = 3.3;

impl Report {
    /// Begins with the machine.
    pub fn of_this_machine() -> Self {
        let machine = machine();
        machine.iter().for_each(|line| println!("{line}"));
        Self {
            machine,
            systems: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// What comes next is about this system.
    pub fn begins(&mut self, name: &'static str, version: &str) {
        println!("\n{name} ({version})");
        self.systems.push(Measured {
            name,
            version: version.to_owned(),
            free: None,
            hot: None,
        });
    }

    /// What a free lock costs.
    pub fn free(&mut self, free: Free) {
        let Some(system) = self.systems.last_mut() else {
            return;
        };
        println!("  a free lock: {}", time(free.lock));
        for bare in &free.bare {
            let ratio = free.lock.as_secs_f64() / bare.time.as_secs_f64();
            println!("  {}: {}, ratio {ratio:.2}", bare.what, time(bare.time));
            if let Some(at_most) = bare.at_most {
                self.verdicts.push(Verdict::new(
                    format!(
                        "{}: a free lock takes at most {at_most:.2} × {}",
                        system.name, bare.what
                    ),
                    format!("{ratio:.2}"),
                    ratio <= at_most,
                ));
            }
        }
        system.free = Some(free);
    }

    /// What becomes of a hot key.
    pub fn hot(&mut self, hot: Hot) {
        let Some(system) = self.systems.last_mut() else {
            return;
        };
        println!(
            "  one hot key: {:.0} hand-offs/s, {:.2} of one task alone (a cycle of {}), shares {:.0} % and {:.0} %",
            hot.per_second,
            hot.of_alone,
            time(hot.cycle),
            100.0 * hot.share,
            100.0 - 100.0 * hot.share,
        );
        println!(
            "  waits: half within {}, 99 of 100 within {}; the fair share is {}",
            time(hot.p50),
            time(hot.p99),
            time(hot.fair)
        );
        if let Some([two, all]) = hot.requests {
            println!("  requests for each grant: {two:.2} with 2 waiters, {all:.2} with 16");
        }
        if system.name == REDIS {
            self.verdicts.extend(promises_of_redis(&hot));
        }
        system.hot = Some(hot);
    }

    /// The one promise that is about two systems. Then says what became of all.
    pub fn compares_with_rslock(&mut self) {
        if let (Some(redis), Some(rslock)) = (self.hot_of(REDIS), self.hot_of(RSLOCK)) {
            let ratio = redis.p99.as_secs_f64() / rslock.p99.as_secs_f64();
            let promise = format!(
                "redis: 99 of 100 waits end within a fifth of the time that {RSLOCK} needs"
            );
            self.verdicts.push(Verdict::new(
                promise,
                format!(
                    "{ratio:.3} ({} beside {})",
                    time(redis.p99),
                    time(rslock.p99)
                ),
                ratio <= BESIDE_RSLOCK,
            ));
        }
        println!("\nPromises");
        for Verdict {
            promise,
            measured,
            kept,
        } in &self.verdicts
        {
            println!("  {} {promise}: {measured}", word(*kept));
        }
    }

    fn hot_of(&self, name: &str) -> Option<&Hot> {
        let system = self.systems.iter().find(|system| system.name == name)?;
        system.hot.as_ref()
    }

    /// The page, which begins with [`TITLE`].
    pub fn markdown(&self) -> String {
        let mut page = format!("{TITLE}{HEAD}");
        for line in &self.machine {
            let _ = writeln!(page, "- {line}");
        }
        for system in &self.systems {
            let _ = writeln!(page, "- `{}`: {}", system.name, system.version);
        }
        page.push_str("\n### Promises\n\n| promise | measured | |\n|---|---|---|\n");
        for Verdict {
            promise,
            measured,
            kept,
        } in &self.verdicts
        {
            let _ = writeln!(page, "| {promise} | {measured} | {} |", word(*kept));
        }
        page.push_str(FREE);
        for system in &self.systems {
            page.push_str(&free_rows(system));
        }
        page.push_str(HOT);
        for system in &self.systems {
            page.push_str(&hot_row(system));
        }
        page
    }
}

impl Verdict {
    fn new(promise: String, measured: String, kept: bool) -> Self {
        Self {
            promise,
            measured,
            kept,
        }
    }
}

fn promises_of_redis(hot: &Hot) -> Vec<Verdict> {
    let (least, most) = FAIR_SHARES;
    let waits = hot.p99.as_secs_f64() / hot.fair.as_secs_f64();
    let mut verdicts = vec![
        Verdict::new(
            format!("redis: hand-offs are at least {LEAST_HAND_OFFS} of what one task alone does"),
            format!("{:.2}", hot.of_alone),
            hot.of_alone >= LEAST_HAND_OFFS,
        ),
        Verdict::new(
            "redis: each of two processes gets 40 to 60 % of the grants".to_owned(),
            format!("{:.0} %", 100.0 * hot.share),
            (least..=most).contains(&hot.share),
        ),
        Verdict::new(
            format!(
                "redis: 99 of 100 waits end within {LONGEST_WAIT} fair shares (16 cycles of one task alone)"
            ),
            format!("{waits:.2}"),
            waits <= LONGEST_WAIT,
        ),
    ];
    verdicts.extend(hot.requests.map(|[two, all]| {
        Verdict::new(
            format!("redis: a grant takes at most {MOST_REQUESTS} requests, however many wait"),
            format!("{two:.2} with 2, {all:.2} with 16"),
            two.max(all) <= MOST_REQUESTS,
        )
    }));
    verdicts
}

/// Where the page begins in the file that it is the end of.
pub const TITLE: &str = "## Locks, side by side";

const HEAD: &str = "

Measured and written by `cargo bench --all-features --bench locks -- --write` (`benches/locks/`). A promise is a ratio of
two figures of the same run; the figures themselves are those of one machine:

";

const FREE: &str = "
### A free lock

One task takes a free lock, with its token, and gives it back; the bare requests are sent by one task over one
connection of their own. Medians of blocks that alternate.

| lock | time | beside | time | ratio |
|---|---|---|---|---|
";

const HOT: &str = "
### One hot key

Two processes with 8 waiters each take one key again and again for 10 s and work for 1 ms while they hold it. *Of
alone*: hand-offs beside those of one task that has the key to itself.

| lock | hand-offs/s | of alone | share of the first process | half wait at most | 99 of 100 wait at most | requests for each grant |
|---|---|---|---|---|---|---|
";

fn free_rows(system: &Measured) -> String {
    let Some(free) = &system.free else {
        return String::new();
    };
    let (name, lock) = (system.name, time(free.lock));
    if free.bare.is_empty() {
        return format!("| `{name}` | {lock} | | | |\n");
    }
    let rows = free.bare.iter().map(|bare| {
        let ratio = free.lock.as_secs_f64() / bare.time.as_secs_f64();
        format!(
            "| `{name}` | {lock} | {} | {} | {ratio:.2} |\n",
            bare.what,
            time(bare.time)
        )
    });
    rows.collect()
}

fn hot_row(system: &Measured) -> String {
    let Some(hot) = &system.hot else {
        return String::new();
    };
    format!(
        "| `{}` | {:.0} | {:.2} | {:.0} % | {} | {} | {} |\n",
        system.name,
        hot.per_second,
        hot.of_alone,
        100.0 * hot.share,
        time(hot.p50),
        time(hot.p99),
        hot.requests
            .map_or(String::new(), |[_, all]| format!("{all:.2}")),
    )
}

fn word(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}

fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 {
        format!("{micros:.1} µs")
    } else {
        format!("{:.2} ms", micros / 1e3)
    }
}

/// Cores, processor, kernel, and what this was built with.
fn machine() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches(['\t', ' ', ':']));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        format!("{cores} cores, {model}"),
        format!("{} {}", std::env::consts::OS, kernel.trim()),
        format!("doublebook {}", env!("CARGO_PKG_VERSION")),
    ]
}
