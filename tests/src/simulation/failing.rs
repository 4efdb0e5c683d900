//! How a run that breaks a rule ends: with all that it takes to see it again.

use std::fmt::Write as _;

use super::{
    Simulation,
    invariants::{Invariant, Seen},
};

impl Simulation {
    pub(super) fn judge(&self, broken: Option<String>) {
        if let Some(broken) = broken {
            self.fail(&broken);
        }
    }

    /// Ends the test, with all that it takes to see the same run again.
    ///
    /// # Panics
    /// Always.
    pub fn fail(&self, why: &str) -> ! {
        let mut last = String::new();
        let from = self.trace.len().saturating_sub(40);
        for (step, event, what) in &self.trace[from..] {
            let _ = writeln!(last, "  {step:>5}  {event:?} {what}");
        }
        panic!(
            "{why}\nat step {} of seed {}, {:?}, faults {:?}; processes ended: {:?}\n\
             the last steps:\n{last}\
             again: FIRN_SIM_SEED={} cargo test -p firn-tests --test {} -- {}",
            self.step,
            self.setting.seed,
            self.setting.order,
            self.setting.faults,
            self.ended,
            self.setting.seed,
            std::env::current_exe()
                .ok()
                .and_then(|path| path
                    .file_stem()
                    .map(|name| name.to_string_lossy().into_owned()))
                .and_then(|name| name.rsplit_once('-').map(|(name, _)| name.to_owned()))
                .unwrap_or_default(),
            std::thread::current().name().unwrap_or_default(),
        )
    }
}

/// The first rule that is broken.
pub(super) fn check(rules: &mut [Box<dyn Invariant>], seen: &Seen<'_>) -> Option<String> {
    rules.iter_mut().find_map(|rule| {
        let broken = rule.see(seen).err()?;
        Some(format!("broken: {}: {broken}", rule.rule()))
    })
}
