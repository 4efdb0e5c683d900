//! What can be typed. It decides the names of the commands; what each takes stands beside its code, and
//! nothing here does anything.

use clap::{Parser, Subcommand};

use crate::commands::{demo, ledger};

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
    pub(crate) command: Command,
}

/// What `firn` can do. Each command's own words, bounds and example are in its module.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a key with real processes on this machine and sign real transactions with it.
    Demo(demo::Arguments),
    /// Look at a participant's ledger.
    #[command(subcommand, after_help = ledger::EXAMPLE)]
    Ledger(ledger::Command),
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
