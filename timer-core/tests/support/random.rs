//! SplitMix64 (Steele, Lea and Flood, 2014): small, fast, and the same everywhere for the same seed.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for part `n`.
    pub(crate) fn part(seed: u64, n: usize) -> Self {
        Self(Self(seed ^ (n as u64).wrapping_mul(0xD1B5_4A32_D192_ED03)).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn micros(&mut self, below: usize) -> Duration {
        Duration::from_nanos(self.below(below * 1_000) as u64)
    }
}

#[test]
fn the_generator_is_the_published_one() {
    let mut random = Random::new(1_234_567);
    let first = [random.next(), random.next(), random.next()];
    assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}
