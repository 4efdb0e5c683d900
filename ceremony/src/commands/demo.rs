//! `firn demo`: shows the report of a run, whether or not everything held.

use crate::{
    cli::Demo,
    demo,
    error::{Error, Exit},
    output::Output,
};

pub(super) fn run(arguments: &Demo, output: &Output) -> Result<Exit, Error> {
    let report = demo::run(arguments, *output)?;
    output.object(&report)?;
    let failed: Vec<String> = report
        .verdicts
        .iter()
        .filter(|verdict| !verdict.holds)
        .map(|verdict| verdict.name.clone())
        .collect();
    if failed.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Error::NotHeld { failed })
    }
}
