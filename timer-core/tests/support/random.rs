//! What tests draw besides numbers. `Rng::with_seed` gives the same numbers in every run, so a
//! failure comes again.

pub(crate) use fastrand::Rng;
use std::time::Duration;

/// A generator of its own for part `n` of what follows from a seed.
pub(crate) fn part(seed: u64, n: usize) -> Rng {
    Rng::with_seed(Rng::with_seed(seed ^ (n as u64).wrapping_mul(0xD1B5_4A32_D192_ED03)).u64(..))
}

pub(crate) trait Draw {
    /// Less than `end`, which is not 0.
    fn duration(&mut self, end: Duration) -> Duration;

    /// Less than so many microseconds.
    fn micros(&mut self, end: u64) -> Duration {
        self.duration(Duration::from_micros(end))
    }

    /// Once in `n` times.
    fn one_in(&mut self, n: usize) -> bool;

    /// One of these, of which there is one at least.
    fn pick<T: Copy>(&mut self, of: &[T]) -> T;
}

impl Draw for Rng {
    fn duration(&mut self, end: Duration) -> Duration {
        Duration::from_nanos(self.u64(..end.as_nanos() as u64))
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.usize(..n) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.usize(..of.len())]
    }
}
