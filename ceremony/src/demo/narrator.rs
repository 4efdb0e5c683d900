//! How the demo tells what it does: numbered steps, what came of each, and how long it took.

use std::{cell::Cell, fmt::Display, time::Duration};

use indicatif::ProgressBar;
use tokio::time::Instant;

use crate::output::Output;

/// Tells a person about the steps.
#[derive(Debug)]
pub(super) struct Narrator {
    output: Output,
    started: Instant,
    step: Cell<u8>,
}

impl Narrator {
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            started: Instant::now(),
            step: Cell::new(0),
        }
    }

    /// Begins a step.
    pub(super) fn step(&self, title: impl Display) {
        let number = self.step.get().saturating_add(1);
        self.step.set(number);
        let elapsed = self.elapsed().as_secs_f64();
        self.output.say("");
        self.output
            .say(format_args!("{number}. {title}  ({elapsed:.1} s)"));
    }

    /// Says something about the step.
    pub(super) fn line(&self, line: impl Display) {
        self.output.say(format_args!("   {line}"));
    }

    /// Says what something is.
    pub(super) fn fact(&self, name: &str, value: impl Display) {
        self.output.say(format_args!("   {name:<17} {value}"));
    }

    /// A spinner for something that takes a while; nobody sees it where nobody watches.
    pub(super) fn spinner(&self, what: &'static str) -> ProgressBar {
        if !self.output.is_watched() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }

    /// How long the run has taken.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
