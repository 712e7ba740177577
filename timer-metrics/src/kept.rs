//! A figure that is expensive to read, and is therefore kept for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time for which a figure is kept. A reading that was held up must not count for long.
const MAX_AGE: Duration = Duration::from_secs(120);

/// The time for which a figure is kept, in multiples of the time that it took. Reading it then
/// takes at most 5 ms in a minute.
const MULTIPLE: u32 = 12_000;

/// A figure, and the time until which it is kept.
#[derive(Debug)]
pub(crate) struct Kept<T>(Mutex<Option<(T, Instant)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> Kept<T> {
    /// Returns the figure, which `read` returns if there is none or it is too old. Holds no lock
    /// during `read`, so several threads may read it at once.
    pub(crate) fn get(&self, read: impl FnOnce() -> T) -> T {
        self.get_by(Instant::now, read)
    }

    fn get_by(&self, clock: impl Fn() -> Instant, read: impl FnOnce() -> T) -> T {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let began = clock();
        if let Some((figure, _)) = kept().as_ref().filter(|(_, until)| began < *until) {
            return figure.clone();
        }
        let figure = read();
        let now = clock();
        *kept() = Some((figure.clone(), now + (now - began).saturating_mul(MULTIPLE).min(MAX_AGE)));
        figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_figure_is_kept_in_proportion_to_its_cost() {
        const MICRO: Duration = Duration::from_micros(1);
        for (cost, kept_for) in [(2 * MICRO, 24_000 * MICRO), (10_000 * MICRO, MAX_AGE)] {
            let kept = Kept::default();
            let now = Cell::new(Instant::now());
            let reads = Cell::new(0);
            let pass = |by| now.set(now.get() + by);
            let read = || {
                pass(cost);
                reads.set(reads.get() + 1);
                reads.get()
            };
            let get = || kept.get_by(|| now.get(), read);
            assert_eq!([get(), get()], [1, 1]);
            pass(kept_for - MICRO);
            assert_eq!(get(), 1);
            pass(MICRO);
            assert_eq!(get(), 2);
        }
    }
}
