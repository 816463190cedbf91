//! How fast the locks are, side by side, and whether they keep their promises.
//!
//!     cargo bench --all-features --bench locks                    measures and prints
//!     cargo bench --all-features --bench locks -- --write         and writes it into docs/benchmarks.md
//!     cargo bench --all-features --bench locks -- redis table     only these systems
//!
//! Two questions are asked of each system, on a real server of its own: what a free lock costs beside the same number
//! of bare requests to that server, in alternating blocks of one run ([`free`]); and what becomes of one hot key when
//! two processes with eight waiters each want it all the time ([`hot`]). A promise is a ratio of two figures of the
//! same run, so that it means the same on any machine; the figures themselves do not.

mod free;
mod hot;
mod report;
mod systems;

use std::path::Path;

use anyhow::{Result, ensure};
use doublebook::stack::Launcher;
use doublebook::stack::found::Missing;

use self::report::Report;
use self::systems::System;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == hot::CHILD) {
        return hot::child(&words[1..]).await;
    }
    // `cargo test --all-targets` starts benchmarks, too, without this word.
    if !words.iter().any(|word| word == "--bench") {
        println!("nothing is measured without `cargo bench`");
        return Ok(());
    }
    let wanted: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let report = measure(&chosen(&wanted)?).await?;
    if words.iter().any(|word| word == "--write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/benchmarks.md");
        let page = std::fs::read_to_string(&path)?;
        // What stands before it is written by hand.
        let by_hand = page.split(report::TITLE).next().unwrap_or_default();
        std::fs::write(&path, format!("{by_hand}{}", report.markdown()))?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}

/// The systems of these names; all when none is named.
fn chosen(wanted: &[&str]) -> Result<Vec<Box<dyn System>>> {
    let known: Vec<&str> = systems::all().iter().map(|system| system.name()).collect();
    for name in wanted {
        ensure!(
            known.contains(name),
            "there is no {name:?}; there is {known:?}"
        );
    }
    let mut systems = systems::all();
    systems.retain(|system| wanted.is_empty() || wanted.contains(&system.name()));
    Ok(systems)
}

/// One system after the other, each alone with its server. One whose server this machine does not have is left out.
async fn measure(systems: &[Box<dyn System>]) -> Result<Report> {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_doublebook"));
    let mut report = Report::of_this_machine();
    for system in systems {
        let folder = tempfile::tempdir()?;
        let server = match system.start(&launcher, folder.path()).await {
            Err(error) if error.is::<Missing>() => {
                report.begins(system.name(), &format!("not measured: {error}"));
                continue;
            }
            started => started?,
        };
        report.begins(system.name(), &system.version(&server.address).await?);
        report.free(free::measure(&**system, &server.address).await?);
        if system.spans_processes() {
            report.hot(hot::measure(&**system, &server.address).await?);
        }
    }
    report.compares_with_rslock();
    Ok(report)
}
