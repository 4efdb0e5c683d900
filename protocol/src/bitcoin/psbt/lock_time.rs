//! The lock time of a version 2 PSBT: the rule of BIP-370, "Determining Lock Time".

use super::{error::PsbtError, fields, raw::Map};

/// Lock times from here on are times, below it heights.
const FIRST_TIME: u32 = 500_000_000;

/// The kind that every input with a requirement can take, heights first; then the greatest of that
/// kind. Without any requirement the fallback, or zero.
pub(super) fn determine(global: &Map<'_>, inputs: &[Map<'_>]) -> Result<u32, PsbtError> {
    let (mut height, mut time) = (Some(0), Some(0));
    let mut is_required = false;
    for (index, map) in inputs.iter().enumerate() {
        let input_time = map.number(&fields::REQUIRED_TIME);
        let input_height = map.number(&fields::REQUIRED_HEIGHT);
        if input_time.is_some_and(|time| time < FIRST_TIME)
            || input_height.is_some_and(|height| height == 0 || height >= FIRST_TIME)
        {
            return Err(PsbtError::RequiredLockTimeOutOfRange(index));
        }
        if input_time.is_none() && input_height.is_none() {
            continue;
        }
        is_required = true;
        // An input that takes only one kind rules the other one out for all.
        height = height.zip(input_height).map(|(most, own)| most.max(own));
        time = time.zip(input_time).map(|(most, own)| most.max(own));
    }
    if !is_required {
        return Ok(global.number(&fields::FALLBACK_LOCKTIME).unwrap_or(0));
    }
    height.or(time).ok_or(PsbtError::ConflictingLockTimes)
}
