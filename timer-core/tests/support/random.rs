//! Random draws for tests. `Rng::with_seed` gives the same numbers in every run, so a failure can
//! be repeated.

pub(crate) use fastrand::Rng;
use std::time::Duration;

/// Returns the generator of part `n` of a test with this seed.
pub(crate) fn part(seed: u64, n: usize) -> Rng {
    Rng::with_seed(Rng::with_seed(seed ^ (n as u64).wrapping_mul(0xD1B5_4A32_D192_ED03)).u64(..))
}

pub(crate) trait Draw {
    /// Draws a duration below `end`, which must not be 0.
    fn duration(&mut self, end: Duration) -> Duration;

    /// Draws a duration below `end` microseconds.
    fn micros(&mut self, end: u64) -> Duration {
        self.duration(Duration::from_micros(end))
    }

    /// Returns `true` once in `n` draws.
    fn one_in(&mut self, n: usize) -> bool;

    /// Draws one of `items`, which must not be empty.
    fn pick<T: Copy>(&mut self, items: &[T]) -> T;
}

impl Draw for Rng {
    fn duration(&mut self, end: Duration) -> Duration {
        Duration::from_nanos(self.u64(..end.as_nanos() as u64))
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.usize(..n) == 0
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.usize(..items.len())]
    }
}
