//! What can be typed. It decides the names of the commands; what each takes stands beside its code, and
//! nothing here does anything.

use clap::{Parser, Subcommand};

use crate::commands::{
    accept, activate, activation, address, admit, authorities, demo, descriptor, enroll, grant,
    init, ledger, plan, policy, psbt, request, run, sign, status, verify,
};

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
    /// Found a trust domain: development CA, operators, the Authorities.
    Init(init::Arguments),
    /// Look at the keys that count, or sign them.
    #[command(subcommand, after_help = authorities::EXAMPLE)]
    Authorities(authorities::Command),
    /// Make a machine's or a person's keys, or put its certificate in place.
    Enroll(enroll::Arguments),
    /// Issue the development CA's certificate for somebody who has enrolled.
    Admit(admit::Arguments),
    /// Write, show or sign the plan of a ceremony.
    #[command(subcommand, after_help = plan::EXAMPLE)]
    Plan(plan::Command),
    /// Write, show or sign what a key may sign.
    #[command(subcommand, after_help = policy::EXAMPLE)]
    Policy(policy::Command),
    /// Accept a plan on a member's machine.
    Accept(accept::Arguments),
    /// Run the ceremony of a plan, and keep everything that was said and signed.
    Run(run::Arguments),
    /// Look at the word that a key may be used, or sign it.
    #[command(subcommand, after_help = activation::EXAMPLE)]
    Activation(activation::Command),
    /// Hand the activation to every member.
    Activate(activate::Arguments),
    /// Say how things are.
    Status(status::Arguments),
    /// Show a key's addresses.
    Address(address::Arguments),
    /// Show a key's descriptor, for wallets that watch it.
    Descriptor(descriptor::Arguments),
    /// Put a payment together, or say what one would do.
    #[command(subcommand, after_help = psbt::EXAMPLE)]
    Psbt(psbt::Command),
    /// Grant one request, as the control plane.
    Grant(grant::Arguments),
    /// Have a payment signed, as a requester.
    Sign(sign::Arguments),
    /// Ask what became of a request.
    #[command(subcommand, after_help = request::EXAMPLE)]
    Request(request::Command),
    /// Check a ceremony's folder offline, to the last byte.
    Verify(verify::Arguments),
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
