//! The output descriptor that wallets watch a group key with (BIP-380, BIP-386, BIP-389). Decides how
//! it is written; scripts come from [`super::extended_key`].

use super::{
    extended_key::{ExtendedKey, KeyError},
    network::Network,
};
use crate::ids::GroupKey;

/// `tr([fingerprint]xpub/<0;1>/*)#checksum` of a group key.
///
/// # Errors
/// When the group key is not a compressed point.
pub fn descriptor(group: &GroupKey, network: Network) -> Result<String, KeyError> {
    let key = ExtendedKey::of_group(group)?;
    let fingerprint = hex::encode(key.fingerprint());
    let body = format!("tr([{fingerprint}]{}/<0;1>/*)", key.to_xpub(network));
    let checksum = checksum(&body).unwrap_or_default();
    Ok(format!("{body}#{checksum}"))
}

/// What descriptors are written in, in the order that gives each character its number (BIP-380).
const INPUT_CHARSET: &str = "0123456789()[],'/*abcdefgh@:$%{}\
     IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~\
     ijklmnopqrstuvwxyzABCDEFGH`#\"\\ ";

const CHECKSUM_CHARSET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The eight characters that BIP-380 puts behind a descriptor; `None` for characters outside its
/// alphabet.
#[must_use]
pub fn checksum(descriptor: &str) -> Option<String> {
    let mut state = 1;
    let (mut class, mut count) = (0_u64, 0_u32);
    for character in descriptor.chars() {
        let number = u64::try_from(INPUT_CHARSET.find(character)?).ok()?;
        state = polymod(state, number & 31);
        // Three characters' classes, 0 to 2, make one more symbol.
        class = (class.checked_mul(3)?).checked_add(number >> 5)?;
        count = count.checked_add(1)?;
        if count == 3 {
            state = polymod(state, class);
            (class, count) = (0, 0);
        }
    }
    if count > 0 {
        state = polymod(state, class);
    }
    for _ in 0..8 {
        state = polymod(state, 0);
    }
    state ^= 1;
    (0..8_u32)
        .rev()
        .map(|place| {
            let symbol = usize::try_from((state >> place.checked_mul(5)?) & 31).ok()?;
            CHECKSUM_CHARSET.get(symbol).map(|byte| char::from(*byte))
        })
        .collect()
}

fn polymod(state: u64, symbol: u64) -> u64 {
    const GENERATOR: [u64; 5] = [
        0xf5_dee5_1989,
        0xa9_fdca_3312,
        0x1b_ab10_e32d,
        0x37_06b1_677a,
        0x64_4d62_6ffd,
    ];
    let top = state >> 35;
    let shifted = ((state & 0x7_ffff_ffff) << 5) ^ symbol;
    let taken = (0_u32..)
        .zip(GENERATOR)
        .filter(|(bit, _)| (top >> bit) & 1 == 1);
    taken.fold(shifted, |sum, (_, term)| sum ^ term)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn makes_the_checksum_of_bip380() {
        assert_eq!(checksum("raw(deadbeef)").as_deref(), Some("89f8spxm"));
        assert_eq!(checksum("raw(déadbeef)"), None);
    }
}
