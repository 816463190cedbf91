//! The command line: what can be asked of the binary, and where it is done.

use clap::{Parser, Subcommand};

/// Sells seats and moves money on several replicas, with and without locks.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Cli {
    /// What to do; without it, `up`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
