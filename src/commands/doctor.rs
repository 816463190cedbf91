//! `doublebook doctor`: what is there, what is missing and how to get it.

use clap::Args;

/// Says what is there.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

/// Prints the report.
pub async fn run(_args: DoctorArgs) -> anyhow::Result<()> {
    Ok(())
}
