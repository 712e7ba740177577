//! The worst runs of the last minute.

use crate::deadline::Nanos;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// The length of one window.
const WINDOW: Duration = Duration::from_secs(10);

/// The number of windows that are kept.
const WINDOWS: u32 = 6;

/// The number of runs that are kept of each window, and that a reader gets.
const KEPT: usize = 10;

/// The lateness in nanoseconds below which no run is kept, 1 ms.
pub(crate) const MIN_LATENESS: Nanos = 1_000_000;

/// The worst runs of each of the last windows of 10 seconds, in the order of the windows.
///
/// Of several runs with the same key, the worst is kept. A key such as the name of a task therefore
/// keeps a crowd of equal tasks from hiding the others.
#[derive(Clone, Debug)]
pub struct WorstRuns<K, R> {
    kept: Vec<Kept<K, R>>,
}

#[derive(Clone, Debug)]
struct Kept<K, R> {
    /// The beginning of the window.
    window: Instant,
    late: Duration,
    key: K,
    run: R,
}

impl<K, R> Kept<K, R> {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window) < WINDOW * WINDOWS
    }
}

impl<K: PartialEq, R: Clone> WorstRuns<K, R> {
    /// Keeps a run that was late by `late` at `now` if it is among the worst. Only then calls
    /// `run`.
    pub fn offer(&mut self, key: K, late: Duration, now: Instant, run: impl FnOnce() -> R) {
        if late < Duration::from_nanos(MIN_LATENESS) {
            return;
        }
        let newest = self.kept.last().map(|kept| kept.window);
        let newest = newest.filter(|window| now.saturating_duration_since(*window) < WINDOW);
        let window = newest.unwrap_or_else(|| {
            self.kept.retain(|kept| kept.is_recent(now));
            now
        });
        let of_window = || self.kept.iter().enumerate().rev().take_while(|(_, kept)| kept.window == window);
        let same = of_window().find(|(_, kept)| kept.key == key);
        let least = || of_window().min_by_key(|(_, kept)| kept.late);
        let replaced = same.or_else(|| least().filter(|_| of_window().count() >= KEPT));
        match replaced.map(|(place, kept)| (place, kept.late)) {
            None => self.kept.push(Kept { window, late, key, run: run() }),
            Some((place, least)) if least < late => self.kept[place] = Kept { window, late, key, run: run() },
            Some(_) => {}
        }
    }

    /// Returns the worst runs of the last 50 to 60 seconds before `now`, the worst first. There are
    /// at most ten, each with another key.
    pub fn get(&self, now: Instant) -> Vec<R> {
        let mut recent: Vec<_> = self.kept.iter().filter(|kept| kept.is_recent(now)).collect();
        recent.sort_by_key(|kept| Reverse(kept.late));
        let mut worst: Vec<&Kept<K, R>> = Vec::new();
        for kept in recent {
            if worst.len() < KEPT && worst.iter().all(|worse| worse.key != kept.key) {
                worst.push(kept);
            }
        }
        worst.into_iter().map(|kept| kept.run.clone()).collect()
    }
}

impl<K, R> Default for WorstRuns<K, R> {
    fn default() -> Self {
        Self { kept: Vec::new() }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_worst_run_of_each_key_is_kept_for_a_minute() {
        let mut worst = WorstRuns::default();
        let begin = Instant::now();
        let mut offer = |key: u64, millis, after| {
            worst.offer(key, Duration::from_millis(millis), begin + after, || (key, millis));
            worst.clone()
        };
        for key in 0..12 {
            offer(key, key + 1, Duration::ZERO);
        }
        offer(12, 0, Duration::ZERO);
        let worst = offer(11, 5, Duration::ZERO);
        let expected: Vec<_> = (2..12).rev().map(|key| (key, key + 1)).collect();
        assert_eq!(worst.get(begin + WINDOW), expected);
        let worst = offer(11, 7, 5 * WINDOW);
        assert_eq!(worst.get(begin + WINDOWS * WINDOW - Duration::from_nanos(1))[0], (11, 12));
        assert_eq!(worst.get(begin + WINDOWS * WINDOW), [(11, 7)]);
        let worst = offer(3, 9, WINDOWS * WINDOW);
        assert_eq!(worst.get(begin + WINDOWS * WINDOW), [(3, 9), (11, 7)]);
        assert!(worst.get(begin + 20 * WINDOW).is_empty());
        assert_eq!(worst.kept.len(), 2, "older ones are gone");
    }
}
