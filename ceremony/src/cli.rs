//! What can be typed. It decides the words and their bounds, and never what they do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Threshold custody on Bitcoin: the operator's tool.
#[derive(Debug, Parser)]
#[command(
    name = "firn",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  firn demo\n\nExit codes: 0 done, 1 refused for good, 2 usage, \
                  3 try again with the same request id, 4 outcome unknown, 5 conflict."
)]
pub struct Arguments {
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `firn` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key with real processes on this machine and sign real transactions with it.
    #[command(
        after_help = "Example:\n  firn demo --participants 5 --threshold 3 --dir ./demo\n\n\
                      Everything that was said and signed stays in the folder."
    )]
    Demo(Demo),
    /// Look at a participant's ledger.
    #[command(
        subcommand,
        after_help = "Example:\n  firn ledger check ./demo/participants/member-1"
    )]
    Ledger(Ledger),
}

/// Options of `firn demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// How many members hold a share of the key (2 to 32).
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub participants: u16,
    /// How many of them sign; any two quorums must meet, so more than half.
    #[arg(long, value_name = "T", default_value_t = 2)]
    pub threshold: u16,
    /// Keep everything in this folder, which must be empty or new; a temporary one otherwise.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Use the binaries that lie beside this one as they are.
    #[arg(long)]
    pub no_build: bool,
}

/// What can be done with a ledger at rest.
#[derive(Debug, Subcommand)]
pub enum Ledger {
    /// Check every record from the first to the last. Changes nothing; the participant may run.
    #[command(
        after_help = "Example:\n  firn ledger check /var/lib/firn/member-1 --json\n\n\
                      Exit codes: 0 sound, 1 damaged, with the position."
    )]
    Check {
        /// A participant's folder, its data folder, or the ledger's folder itself.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn every_command_has_help_with_an_example() {
        fn walk(command: &clap::Command) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Example:"), "{}", command.get_name());
            command.get_subcommands().for_each(walk);
        }
        let command = Arguments::command();
        command.clone().debug_assert();
        walk(&command);
    }
}
