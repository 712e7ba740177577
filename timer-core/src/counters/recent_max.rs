//! A maximum over the recent past.

use crate::deadline::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// The length of one window, a minute.
const WINDOW: Nanos = 60_000_000_000;

/// The greatest value of the current and the last window. One thread at a time writes.
#[derive(Debug, Default)]
pub(crate) struct RecentMax {
    /// The number of the window of the last value.
    window: AtomicU64,
    max: AtomicU64,
    /// The greatest value of the window before.
    former: AtomicU64,
}

impl RecentMax {
    /// Records `value`, which was measured at `now`.
    #[inline]
    pub(crate) fn record(&self, value: u64, now: Nanos) {
        let (max, former) = self.last_two(now);
        // ORDERING: Relaxed, because there is one writer, and a reader may see a figure of the
        // moment before.
        self.former.store(former, Ordering::Relaxed);
        self.max.store(max.max(value), Ordering::Relaxed);
        self.window.store(now / WINDOW, Ordering::Relaxed);
    }

    /// Returns the greatest value of the last one to two minutes before `now`.
    pub(crate) fn get(&self, now: Nanos) -> u64 {
        let (max, former) = self.last_two(now);
        max.max(former)
    }

    /// Returns the greatest values of the window of `now` and of the one before.
    #[inline]
    fn last_two(&self, now: Nanos) -> (u64, u64) {
        // ORDERING: Relaxed, as in `record`.
        let max = self.max.load(Ordering::Relaxed);
        match (now / WINDOW).saturating_sub(self.window.load(Ordering::Relaxed)) {
            0 => (max, self.former.load(Ordering::Relaxed)),
            1 => (0, max),
            _ => (0, 0),
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_two_windows() {
        let recent = RecentMax::default();
        let begin = 1_000 * WINDOW;
        recent.record(7, begin + WINDOW - 1);
        recent.record(3, begin + WINDOW);
        assert_eq!(recent.get(begin + WINDOW), 7);
        assert_eq!(recent.get(begin + 2 * WINDOW - 1), 7);
        assert_eq!(recent.get(begin + 2 * WINDOW), 3);
        assert_eq!(recent.get(begin + 3 * WINDOW), 0);
        recent.record(5, begin + 9 * WINDOW);
        assert_eq!(recent.get(begin + 9 * WINDOW), 5);
    }
}
