//! Hedged randomness for nonces: a copied generator state, in a cloned machine or a restored
//! snapshot, does not repeat a nonce in another session.

use std::convert::Infallible;

use firn_protocol::{ids::SessionId, tagged::tagged_hash};
use rand_core::{CryptoRng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use firn_ledger::journal::Head;

/// Yields `hash(system randomness, session, input, ledger head, counter)`, so that nonces are as
/// good as the best of its parts.
pub struct HedgedRng<'a, R> {
    system: &'a mut R,
    session: SessionId,
    input: u32,
    head: Head,
    counter: u64,
}

impl<'a, R: CryptoRng> HedgedRng<'a, R> {
    /// The source for one input of one session, opened at `head`.
    pub fn new(system: &'a mut R, session: SessionId, input: u32, head: Head) -> Self {
        Self {
            system,
            session,
            input,
            head,
            counter: 0,
        }
    }

    fn block(&mut self) -> Zeroizing<[u8; 32]> {
        let mut fresh = Zeroizing::new([0; 32]);
        self.system.fill_bytes(&mut *fresh);
        self.counter = self.counter.wrapping_add(1);
        Zeroizing::new(tagged_hash(
            "firn/nonce",
            &[
                &*fresh,
                self.session.as_bytes(),
                &self.input.to_be_bytes(),
                &self.head.size.leaves().to_be_bytes(),
                self.head.root.as_bytes(),
                &self.counter.to_be_bytes(),
            ],
        ))
    }
}

impl<R: CryptoRng> TryRng for HedgedRng<'_, R> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(32) {
            let block = self.block();
            chunk
                .iter_mut()
                .zip(block.iter())
                .for_each(|(byte, random)| *byte = *random);
        }
        Ok(())
    }
}

impl<R: CryptoRng> TryCryptoRng for HedgedRng<'_, R> {}

#[cfg(test)]
mod tests {
    use firn_ledger::journal::Head;
    use firn_protocol::{
        ids::SessionId,
        merkle::{MerkleRoot, TreeSize},
    };
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
    use rand_core::Rng;

    use super::HedgedRng;

    #[test]
    fn a_copied_generator_repeats_nothing_in_another_session_input_or_ledger() {
        let head = Head::empty();
        let later = Head {
            size: TreeSize::new(1),
            root: MerkleRoot::from_bytes([1; 32]),
        };
        let [one, two] = [1, 2].map(|byte| SessionId::from_bytes([byte; 32]));
        let draw = |session, input, head| {
            let mut copy = ChaCha20Rng::seed_from_u64(7);
            let mut bytes = [0; 64];
            HedgedRng::new(&mut copy, session, input, head).fill_bytes(&mut bytes);
            bytes
        };
        let first = draw(one, 0, head);
        assert_eq!(first, draw(one, 0, head));
        for other in [draw(two, 0, head), draw(one, 1, head), draw(one, 0, later)] {
            assert_ne!(first, other);
            assert_ne!(first[32..], other[32..]);
        }
        assert_ne!(first[..32], first[32..]);
    }
}
