//! The published state of a set of timers.

use metrics::{Key, Level, Metadata, Recorder};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

static METADATA: Metadata<'static> = Metadata::new(MODULE, Level::INFO, Some(MODULE));

/// The module that recorders see.
const MODULE: &str = "timer_metrics::facade";

/// The number of new lags of one histogram above which a call records a sample in proportion.
pub(super) const MAX_RECORDS: u64 = 10_000;

/// A value to publish.
pub(super) enum Sample {
    Counter(u64),
    /// Seconds that only rise. They are a gauge, because the counters of the facade are integers.
    Seconds(f64),
    Gauge(f64),
    /// The numbers of lags by size, in ascending order.
    Lags(Vec<(Duration, u64)>),
}

/// The published state of each label.
#[derive(Default)]
pub(super) struct Published {
    labels: HashMap<String, LabelState>,
}

/// The published state of the timers that had a label.
struct LabelState {
    /// The number of the timer that has the label.
    number: u64,
    is_gone: bool,
    figures: HashMap<Key, Figure>,
}

/// The published state of a series.
enum Figure {
    /// The counts of earlier timers under the label, and of the current one.
    Counter {
        earlier: u64,
        current: u64,
    },
    Seconds {
        earlier: f64,
        current: f64,
    },
    /// A gauge, and whether it has a value that was not cleared since.
    Gauge {
        has_value: bool,
    },
    /// The number of lags of each size that were recorded of the current timer.
    Lags(Vec<u64>),
}

impl Published {
    /// Publishes the samples of the living timers, each with its number and its label. Sets the
    /// gauges of all others to zero.
    pub(super) fn publish<'t>(
        &mut self,
        recorder: &dyn Recorder,
        timers: impl Iterator<Item = (u64, &'t str, Vec<(Key, Sample)>)>,
    ) {
        let mut living = HashSet::new();
        for (number, label, samples) in timers {
            living.insert(label);
            if !self.labels.contains_key(label) {
                self.labels.insert(label.to_owned(), LabelState { number, is_gone: false, figures: HashMap::new() });
            }
            if let Some(state) = self.labels.get_mut(label) {
                state.publish(recorder, number, samples);
            }
        }
        let gone = self.labels.iter_mut().filter(|(label, state)| !state.is_gone && !living.contains(label.as_str()));
        for (_, state) in gone {
            state.is_gone = true;
            state.clear_gauges(recorder, &HashSet::new());
        }
    }
}

impl LabelState {
    fn publish(&mut self, recorder: &dyn Recorder, number: u64, samples: Vec<(Key, Sample)>) {
        if self.number != number {
            self.follow(number);
        }
        self.is_gone = false;
        for (key, sample) in &samples {
            if !self.figures.contains_key(key) {
                self.figures.insert(key.clone(), Figure::of(sample));
            }
            if let Some(figure) = self.figures.get_mut(key) {
                figure.publish(recorder, key, sample);
            }
        }
        self.clear_gauges(recorder, &samples.iter().map(|(key, _)| key).collect());
    }

    /// Continues the series with a new timer under the same label.
    fn follow(&mut self, number: u64) {
        self.number = number;
        for figure in self.figures.values_mut() {
            match figure {
                Figure::Counter { earlier, current } => *earlier += std::mem::take(current),
                Figure::Seconds { earlier, current } => *earlier += std::mem::take(current),
                Figure::Gauge { .. } => {}
                Figure::Lags(before) => before.clear(),
            }
        }
    }

    /// Sets gauges without a value to zero once, so that a timer does not inherit the bound of an
    /// earlier one.
    fn clear_gauges(&mut self, recorder: &dyn Recorder, except: &HashSet<&Key>) {
        for (key, figure) in self.figures.iter_mut().filter(|(key, _)| !except.contains(key)) {
            if let Figure::Gauge { has_value: has_value @ true } = figure {
                *has_value = false;
                recorder.register_gauge(key, &METADATA).set(0.0);
            }
        }
    }
}

impl Figure {
    fn of(sample: &Sample) -> Self {
        match sample {
            Sample::Counter(_) => Self::Counter { earlier: 0, current: 0 },
            Sample::Seconds(_) => Self::Seconds { earlier: 0.0, current: 0.0 },
            Sample::Gauge(_) => Self::Gauge { has_value: false },
            Sample::Lags(_) => Self::Lags(Vec::new()),
        }
    }

    fn publish(&mut self, recorder: &dyn Recorder, key: &Key, sample: &Sample) {
        match (sample, self) {
            (Sample::Counter(count), Self::Counter { earlier, current }) => {
                *current = *count;
                recorder.register_counter(key, &METADATA).absolute(*earlier + *current);
            }
            (Sample::Seconds(seconds), Self::Seconds { earlier, current }) => {
                *current = *seconds;
                recorder.register_gauge(key, &METADATA).set(*earlier + *current);
            }
            (Sample::Gauge(value), Self::Gauge { has_value }) => {
                *has_value = true;
                recorder.register_gauge(key, &METADATA).set(*value);
            }
            (Sample::Lags(lags), Self::Lags(before)) => record(recorder, key, lags, before),
            _ => {}
        }
    }
}

/// Records the lags that were added since `before`, and updates `before`.
fn record(recorder: &dyn Recorder, key: &Key, lags: &[(Duration, u64)], before: &mut Vec<u64>) {
    before.resize(lags.len(), 0);
    let new: Vec<u64> = lags.iter().zip(&*before).map(|((_, now), before)| now.saturating_sub(*before)).collect();
    *before = lags.iter().map(|(_, count)| *count).collect();
    let total: u64 = new.iter().sum();
    let histogram = recorder.register_histogram(key, &METADATA);
    for ((bound, _), count) in lags.iter().zip(new).filter(|(_, count)| *count > 0) {
        let count = if total <= MAX_RECORDS { count } else { thinned(count, total) };
        histogram.record_many(bound.as_secs_f64(), usize::try_from(count).unwrap_or(usize::MAX));
    }
}

/// Returns the share of `count` in [`MAX_RECORDS`], at least 1.
fn thinned(count: u64, total: u64) -> u64 {
    let share = u128::from(count) * u128::from(MAX_RECORDS) / u128::from(total.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::{MAX_RECORDS, thinned};

    #[test]
    fn thinning_keeps_shares_and_every_size() {
        assert_eq!(thinned(500_000, 1_000_000), MAX_RECORDS / 2);
        assert_eq!(thinned(1, u64::MAX), 1);
        assert_eq!(thinned(u64::MAX, u64::MAX), MAX_RECORDS);
    }
}
