//! The binary: parse, start tracing, dispatch.

use clap::Parser;

fn main() {
    let _cli = doublebook::commands::Cli::parse();
}
