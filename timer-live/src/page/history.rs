//! Samples of the timers' counters during the last minute, from which rates are computed.

use super::json::Json;
use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The lengths that a window of a second, and one of a minute, may have. A page asks once a second,
/// but not exactly.
const SECOND: RangeInclusive<Duration> = millis(900)..=millis(3_000);
const MINUTE: RangeInclusive<Duration> = millis(900)..=millis(60_500);

/// The least time between two samples that are kept, which bounds their number when many pages are
/// open.
const SPACING: Duration = millis(450);

/// The number of timers, in the order of the set, of which samples are kept. It bounds the memory,
/// as a sample of a timer takes about 1 KB.
const MAX_TIMERS: usize = 500;

/// The samples of the last minute, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    samples: Mutex<VecDeque<Sample>>,
}

/// The counts of all timers at one instant, by the number of the timer.
#[derive(Debug)]
pub(super) struct Sample {
    at: Instant,
    timers: HashMap<u64, Counts>,
}

/// The counts of one timer, or their differences between two samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    /// The counters that the page shows as rates, under their names in `stats.json`.
    pub(super) named: Vec<(&'static str, u64)>,
    /// The numbers of durations by bucket, in the order of the histograms in `stats.json`.
    pub(super) histograms: Vec<Vec<u64>>,
}

/// The counts of one timer, and their changes in the last second and the last minute. A window is
/// absent if no sample of suitable age has the timer.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) now: Counts,
    pub(super) second: Option<Window>,
    pub(super) minute: Option<Window>,
}

/// The changes since a sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) length: Duration,
    pub(super) change: Counts,
}

impl History {
    /// Returns the recent changes of each timer, and adds the current counts as a sample. A timer
    /// is identified by its number.
    pub(super) fn add(&self, now: Instant, timers: impl IntoIterator<Item = (u64, Counts)>) -> Vec<Recent> {
        let mut samples = self.age(now);
        let mut sample = Sample { at: now, timers: HashMap::new() };
        let recents = timers.into_iter().map(|(number, counts)| {
            let window = |sample: &Sample, lengths: &RangeInclusive<Duration>| {
                let length = now.saturating_duration_since(sample.at);
                let earlier = sample.timers.get(&number).filter(|_| lengths.contains(&length))?;
                Some(Window { length, change: counts.since(earlier) })
            };
            let second = samples.iter().rev().find_map(|sample| window(sample, &SECOND));
            let minute = samples.iter().find_map(|sample| window(sample, &MINUTE));
            if sample.timers.len() < MAX_TIMERS {
                sample.timers.insert(number, counts.clone());
            }
            Recent { now: counts, second, minute }
        });
        let recents: Vec<Recent> = recents.collect();
        if samples.back().is_none_or(|last| now.saturating_duration_since(last.at) >= SPACING) {
            samples.push_back(sample);
        }
        recents
    }

    /// Drops the samples that are too old for any window, and returns the others.
    pub(super) fn age(&self, now: Instant) -> MutexGuard<'_, VecDeque<Sample>> {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.retain(|sample| now.saturating_duration_since(sample.at) <= *MINUTE.end());
        if samples.is_empty() {
            samples.shrink_to_fit();
        }
        samples
    }

    /// Returns the number of counts that are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|sample| sample.timers.len()).sum()
    }
}

impl Counts {
    /// Returns the differences to `earlier`. Counters only rise, but two requests may take their
    /// snapshots in one order and add them in the other.
    fn since(&self, earlier: &Self) -> Self {
        let named = self.named.iter().zip(&earlier.named);
        let histograms = self.histograms.iter().zip(&earlier.histograms);
        let each = |now: &[u64], before: &[u64]| {
            now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        Self {
            named: named.map(|((name, now), (_, before))| (*name, now.saturating_sub(*before))).collect(),
            histograms: histograms.map(|(now, before)| each(now, before)).collect(),
        }
    }
}

impl Recent {
    /// Writes the counters, and their rates over both windows.
    pub(super) fn write_rates(&self, json: &mut Json) {
        for (name, count) in &self.now.named {
            json.key(name).number(count);
        }
        json.key("last_second").option(self.second.as_ref(), rates);
        json.key("last_minute").option(self.minute.as_ref(), rates);
    }

    /// Writes the buckets of a histogram, with a last figure for durations beyond all bounds.
    pub(super) fn write_buckets(&self, json: &mut Json, index: usize) {
        json.key("counts").array(&self.now.histograms[index], Json::number);
        let minute = self.minute.as_ref().map(|window| &window.change.histograms[index]);
        json.key("last_minute").option(minute, |json, counts| json.array(counts, Json::number));
    }
}

/// Writes the changes of a window per second, with the exact length of the window.
fn rates(json: &mut Json, window: &Window) {
    json.object(|json| {
        json.key("seconds").seconds(window.length);
        for (name, count) in &window.change.named {
            json.key(name).number(*count as f64 / window.length.as_secs_f64());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::counts;
    use super::{Counts, History, MAX_TIMERS, MINUTE, Recent, millis};
    use std::time::{Duration, Instant};
    use timer_core::Timer;
    use timer_metrics::TimerMetrics;

    const MILLI: Duration = millis(1);

    /// Adds a sample and returns the changes of the first timer.
    fn add(history: &History, at: Instant, metrics: &TimerMetrics) -> Recent {
        let timers = metrics.snapshots();
        history.add(at, timers.iter().map(|timer| (timer.number, counts(timer)))).remove(0)
    }

    fn named(counts: &Counts, name: &str) -> u64 {
        counts.named.iter().find(|counter| counter.0 == name).unwrap().1
    }

    #[test]
    fn windows_have_the_changes_of_their_length() {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        let metrics = TimerMetrics::from_iter([&timer]);
        let history = History::default();
        let start = Instant::now();
        let at = |second: u64| add(&history, start + millis(second * 1_000), &metrics);
        let first = at(0);
        assert!(first.second.is_none() && first.minute.is_none());
        for second in 1..=100 {
            for _ in 0..second {
                timer.new_timeout(MILLI, |_| {}).unwrap();
            }
            driver.advance(MILLI);
            let recent = at(second);
            let short = recent.second.unwrap();
            let long = recent.minute.unwrap();
            assert_eq!((short.length, named(&short.change, "expired")), (millis(1_000), second));
            let length = second.min(60);
            assert_eq!(long.length, millis(length * 1_000));
            let scheduled: u64 = (second - length + 1..=second).sum();
            assert_eq!((named(&long.change, "scheduled"), long.change.histograms[0][0]), (scheduled, scheduled));
        }
        assert_eq!(history.samples.lock().unwrap().len(), 61);
    }

    #[test]
    fn a_pause_leaves_no_window() {
        let timer = Timer::new();
        let metrics = TimerMetrics::from_iter([&timer]);
        let history = History::default();
        let start = Instant::now();
        let at = |milli: u64| add(&history, start + millis(milli), &metrics);
        at(0);
        let after_a_while = at(10_000);
        assert!(after_a_while.second.is_none() && after_a_while.minute.is_some());
        assert!(at(100_000).minute.is_none());
        // Too soon for a window of a second.
        let soon = at(100_100);
        assert!(soon.second.is_none() && soon.minute.is_none());
    }

    #[test]
    fn many_pages_share_the_samples() {
        let timer = Timer::new();
        let metrics = TimerMetrics::from_iter([&timer]);
        let history = History::default();
        let start = Instant::now();
        for milli in (0..70_000).step_by(50) {
            let recent = add(&history, start + millis(milli), &metrics);
            let length = recent.second.map(|window| window.length);
            assert!(milli < 900 || length.is_some_and(|length| length < millis(1_500)), "{milli} {length:?}");
        }
        assert!(history.samples.lock().unwrap().len() <= 140);
    }

    #[test]
    fn samples_of_many_timers_are_bounded_and_age() {
        let history = History::default();
        let start = Instant::now();
        let timer = Timer::new();
        let counts = counts(&TimerMetrics::from_iter([&timer]).snapshots()[0]);
        for second in 0..70 {
            let recents = history.add(start + millis(second * 1_000), (0..700).map(|number| (number, counts.clone())));
            let with_window = recents.iter().filter(|recent| recent.second.is_some()).count();
            assert_eq!(with_window, if second == 0 { 0 } else { MAX_TIMERS }, "{second}");
            assert!(history.len() <= 61 * MAX_TIMERS);
        }
        drop(history.age(start + millis(69_000) + *MINUTE.end() + MILLI));
        assert_eq!(history.len(), 0);
    }

    #[test]
    fn a_new_timer_under_an_old_label_starts_at_zero() {
        let metrics = TimerMetrics::new();
        let history = History::default();
        let start = Instant::now();
        let first = Timer::new();
        metrics.watch(&first);
        first.new_timeout(millis(60_000), |_| {}).unwrap();
        add(&history, start, &metrics);
        drop(first);
        let second = Timer::new();
        assert_eq!(metrics.watch(&second), "timer");
        let recent = add(&history, start + millis(1_000), &metrics);
        assert!(recent.second.is_none() && named(&recent.now, "scheduled") == 0);
    }
}
