//! The coordinator as a process: reads its configuration, runs until it is told to stop.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use firn_coordinator::{config::Config, daemon, error::CoordinatorError, start_logging};

/// Carries messages between the participants that hold a key together, and keeps nothing.
#[derive(Debug, Parser)]
#[command(version, after_long_help = EXAMPLE, after_help = "See --help for an example.")]
struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

const EXAMPLE: &str = "\
Example:
  firn-coordinator --config /etc/firn/coordinator.toml

  # coordinator.toml; paths are relative to its folder
  listen = \"0.0.0.0:7443\"            # default 127.0.0.1:0, any free port
  address_file = \"address\"           # optional: the bound address is written here
  identity_key = \"identity.key\"      # Ed25519 seed, 64 hexadecimal digits, mode 600
  authorities = \"authorities.cbor\"   # as signed by the operators
  authorities_digest = \"<64 hexadecimal digits, compared by the operator>\"

  [tls]
  certificate = \"coordinator.pem\"
  key = \"coordinator-key.pem\"
  roots = \"ca.pem\"
  look_every_ms = 30000              # optional; a new certificate is taken without a restart

  [limits]                           # optional, these are the defaults
  requests = 64                      # at once; more are told that it is busy
  step_ms = 10000                    # how long members may take for a step
  drain_ms = 5000                    # what is in flight may go on after SIGTERM

SIGTERM drains, a second one ends at once. SIGHUP reads certificate, key and roots again.
The log goes to standard error: text on a terminal, JSON otherwise. RUST_LOG sets its level.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logging();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(code = error.code(), advice = error.advice(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), CoordinatorError> {
    let config = Config::load(&arguments.config)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CoordinatorError::System)?;
    runtime.block_on(async {
        let stop = firn_process::stop_signal().map_err(CoordinatorError::System)?;
        daemon::run(config, stop).await
    })
}
