//! A ceremony's steps as they are told: a line that moves where somebody watches, a line for each finished
//! step everywhere. It decides nothing.

use std::time::Duration;

use firn_protocol::messages::Progress;
use indicatif::ProgressBar;

use crate::output::Output;

/// How far a ceremony is.
pub(super) struct Steps {
    output: Output,
    bar: ProgressBar,
    current: Option<(String, u16)>,
}

impl Steps {
    pub(super) fn new(output: Output) -> Self {
        let bar = if output.is_watched() {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            output,
            bar,
            current: None,
        }
    }

    /// A member has done its part of a step.
    pub(super) fn reached(&mut self, progress: &Progress) {
        let step = progress.step.as_str();
        // The steps inside one proof of life come again with each of them.
        if step.contains(':') {
            return;
        }
        if self.current.as_ref().is_none_or(|(name, _)| name != step) {
            self.finished();
        }
        let (done, of) = (progress.done, progress.of);
        self.bar.set_message(format!("{step}: {done} of {of}"));
        self.current = Some((step.to_owned(), of));
    }

    /// All of it is done.
    pub(super) fn done(mut self) {
        self.finished();
        self.bar.finish_and_clear();
    }

    /// It ended in the middle of a step.
    pub(super) fn gone(self) {
        self.bar.finish_and_clear();
    }

    fn finished(&mut self) {
        if let Some((step, of)) = self.current.take() {
            let output = self.output;
            self.bar
                .suspend(|| output.fact("done", format_args!("{step}: {of} of {of}")));
        }
    }
}
