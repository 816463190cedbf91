//! `doublebook up`: everything, on this machine.

use clap::Args;

/// Runs everything.
#[derive(Debug, Args)]
pub struct UpArgs {}

/// Runs everything until it is told to stop.
pub async fn run(_args: UpArgs) -> anyhow::Result<()> {
    Ok(())
}
