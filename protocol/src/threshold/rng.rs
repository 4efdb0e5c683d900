//! The bridge between the random source of Firn's state machines and frost's older interface.

use rand_core::CryptoRng;

/// A random source as frost's rand_core 0.6 wants it.
pub struct FrostRng<'a, R>(&'a mut R);

impl<'a, R: CryptoRng> FrostRng<'a, R> {
    /// Lends `rng` to frost.
    pub fn new(rng: &'a mut R) -> Self {
        Self(rng)
    }
}

impl<R: CryptoRng> rand_core_frost::RngCore for FrostRng<'_, R> {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core_frost::Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

impl<R: CryptoRng> rand_core_frost::CryptoRng for FrostRng<'_, R> {}
