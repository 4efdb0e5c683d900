//! A digest as people compare it: read aloud on one machine, checked on another.

/// All 64 hexadecimal digits in groups of four, as they are read aloud.
#[must_use]
pub fn spoken(digest: &[u8; 32]) -> String {
    let groups: Vec<String> = digest.chunks(2).map(hex::encode).collect();
    groups.join(" ")
}

/// The first eight digits, for lines where the whole stands nearby.
#[must_use]
pub fn short(digest: &[u8; 32]) -> String {
    hex::encode(digest).chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::{short, spoken};

    #[test]
    fn nothing_of_the_digest_is_left_out_when_it_is_compared() {
        let digest: [u8; 32] = std::array::from_fn(|index| u8::try_from(index).unwrap() | 0xa0);
        let text = spoken(&digest);
        assert_eq!(text.split(' ').count(), 16);
        assert_eq!(text.replace(' ', ""), hex::encode(digest));
        assert!(hex::encode(digest).starts_with(&short(&digest)));
        let mut other = digest;
        other[31] ^= 1;
        assert_ne!(spoken(&other), text);
    }
}
