//! The participant's command line: run the daemon, or make what it needs. What an operator asks a running
//! daemon goes through its control socket, with `firn`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use firn_participant::{
    config::{Config, EXAMPLE, LogFormat},
    daemon, process, vault,
};
use tracing_subscriber::EnvFilter;

const EXAMPLES: &str = "Examples:
  firn-participant --config /etc/firn/participant.toml
  firn-participant example-config > participant.toml";

/// Holds one signing share and decides for itself what it signs.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    /// The configuration, TOML.
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        default_value = "participant.toml"
    )]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key file for the vault: 32 random bytes, for this user alone.
    #[command(after_help = "Example:\n  firn-participant make-vault-key /etc/firn/vault.key")]
    MakeVaultKey {
        /// Where; a file that is there already is not touched.
        file: PathBuf,
    },
    /// Print a configuration with every field.
    #[command(after_help = "Example:\n  firn-participant example-config > participant.toml")]
    ExampleConfig,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Before anything secret is read.
    if let Err(error) = process::harden() {
        return fail(error.code(), &error, error.advice());
    }
    match arguments.command {
        Some(Action::MakeVaultKey { file }) => match vault::make_key_file(&file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(error.code(), &error, error.advice()),
        },
        Some(Action::ExampleConfig) => {
            say(EXAMPLE.trim_end());
            ExitCode::SUCCESS
        }
        None => match Config::load(&arguments.config) {
            Ok(config) => run(config),
            Err(error) => fail(error.code(), &error, error.advice()),
        },
    }
}

fn run(config: Config) -> ExitCode {
    start_log(config.log);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail("runtime_failed", &error, "Look at the system's limits."),
    };
    let build = match process::build_digest() {
        Ok(build) => build,
        Err(error) => return fail(error.code(), &error, error.advice()),
    };
    match runtime.block_on(daemon::run(config, build, asked_to_stop())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(code = error.code(), advice = error.advice(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Until this is waited for a signal ends the process: nothing is served yet.
async fn asked_to_stop() {
    match firn_process::stop_signal() {
        Ok(stop) => stop.await,
        Err(error) => tracing::error!("signals cannot be heard, so this ends: {error}"),
    }
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("FIRN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    match format {
        LogFormat::Human => log.with_ansi(terminal).init(),
        LogFormat::Json => log.json().init(),
        LogFormat::Auto if terminal => log.init(),
        LogFormat::Auto => log.json().init(),
    }
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(
    clippy::print_stderr,
    reason = "the error of a command, before there is a log"
)]
fn fail(code: &str, error: &dyn std::fmt::Display, advice: &str) -> ExitCode {
    eprintln!("error[{code}]: {error}\n  what to do: {advice}");
    ExitCode::FAILURE
}
