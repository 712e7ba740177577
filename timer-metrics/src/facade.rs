//! The timers to the recorder that is installed for the facade `metrics`.
//!
//! The facade has calls for counters, gauges and single observations, and a timer has counts of its own. So counters are
//! published as absolute values, gauges are set, and of a histogram what has come since the last time is recorded once more,
//! step by step of a fine ladder: the way in which other sources with histograms of their own fill the facade's.

use crate::buckets::counts;
use crate::series::{LABEL, SERIES, Series, Value};
use crate::snapshot::TimerSnapshot;
use crate::timer_metrics::TimerMetrics;
use metrics::{Key, Label, Level, Metadata, Recorder, Unit};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;
use timer_core::LagSnapshot;

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// At most so many observations are recorded of one histogram at a time; more are thinned, in proportion.
const MOST_RECORDS: u64 = 10_000;

/// Publishes the timers of a [`TimerMetrics`] through the facade `metrics`, with the names that Prometheus sees.
///
/// Counters are absolute values. When a timer is gone its gauges are set to zero once, because the facade cannot take a
/// series back, and its counters stay; another timer under the same label goes on from there. So a bound or a longest delay of
/// zero means that there is none.
///
/// Lags are histograms in seconds: what came since the last call is recorded again, each lag rounded up by at most 28 %
/// (bounds such as 10, 25, 50, 100 us are hit exactly, so buckets there are exact). Of more than 10,000 new lags an even
/// choice is recorded, at least one of each size, so that a call stays short; `timer_runs_total` has the exact number.
///
/// # Examples
///
/// From a timeout of the timer itself. The publisher keeps no timer alive:
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_metrics::TimerMetrics;
///
/// let timer = Timer::new();
/// let mut publisher = TimerMetrics::from_iter([&timer]).publisher();
/// timer.schedule_at_fixed_rate(Duration::ZERO, Duration::from_secs(10), move |_| publisher.publish())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Publisher {
    metrics: TimerMetrics,
    described: bool,
    published: HashMap<String, Published>,
}

/// What was published under a label.
struct Published {
    /// Which timer it was.
    number: u64,
    gone: bool,
    /// One for each of the series.
    figures: Vec<Figure>,
}

enum Figure {
    /// What earlier timers under the label have counted, and what this one has.
    Counter { earlier: u64, current: u64 },
    /// Whether it has been set, and not been cleared since.
    Gauge { set: bool },
    /// How many lags of each size were recorded of this timer.
    Lag(Vec<u64>),
}

impl TimerMetrics {
    /// Something to publish the timers of this set with, now and then.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let mut publisher = timer_metrics::TimerMetrics::from_iter([&timer]).publisher();
    /// publisher.publish();
    /// ```
    pub fn publisher(&self) -> Publisher {
        Publisher { metrics: self.clone(), described: false, published: HashMap::new() }
    }
}

impl Publisher {
    /// Publishes all timers as they stand now. Install the recorder before the first call: that one describes the series, too, and
    /// lags that are published without a recorder are not recorded later.
    ///
    /// Costs as much as [`TimerMetrics::snapshots`], and of each timer's three lags at most 10,000 records and one for each size,
    /// at what the recorder takes for them. A panic of the recorder is passed on.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let mut publisher = timer_metrics::TimerMetrics::from_iter([&timer]).publisher();
    /// // The recorder for this call only; an application installs one for all.
    /// metrics::with_local_recorder(&metrics::NoopRecorder, || publisher.publish());
    /// ```
    pub fn publish(&mut self) {
        let timers = self.metrics.snapshots();
        metrics::with_recorder(|recorder| {
            if !self.described {
                SERIES.iter().for_each(|series| describe(recorder, series));
                self.described = true;
            }
            for timer in &timers {
                if !self.published.contains_key(&timer.label) {
                    self.published.insert(timer.label.clone(), Published::new(timer.number));
                }
                if let Some(published) = self.published.get_mut(&timer.label) {
                    published.publish(recorder, timer);
                }
            }
            let living: HashSet<&str> = timers.iter().map(|timer| timer.label.as_str()).collect();
            for (label, published) in &mut self.published {
                if !published.gone && !living.contains(label.as_str()) {
                    published.clear(recorder, label);
                }
            }
        });
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

impl Published {
    fn new(number: u64) -> Self {
        let figures = SERIES.iter().map(|series| match series.value {
            Value::Counter(_) => Figure::Counter { earlier: 0, current: 0 },
            Value::Gauge(_) | Value::Seconds(_) => Figure::Gauge { set: false },
            Value::Lag(_) => Figure::Lag(Vec::new()),
        });
        Self { number, gone: false, figures: figures.collect() }
    }

    fn publish(&mut self, recorder: &dyn Recorder, timer: &TimerSnapshot) {
        if self.number != timer.number {
            self.follow(timer.number);
        }
        self.gone = false;
        for (series, figure) in SERIES.iter().zip(&mut self.figures) {
            match (&series.value, figure) {
                (Value::Counter(get), Figure::Counter { earlier, current }) => {
                    *current = get(timer);
                    recorder.register_counter(&key(series, &timer.label), &METADATA).absolute(*earlier + *current);
                }
                (Value::Gauge(get), Figure::Gauge { set }) => {
                    gauge(recorder, &key(series, &timer.label), get(timer).map(|value| value as f64), set)
                }
                (Value::Seconds(get), Figure::Gauge { set }) => {
                    let value = get(timer).map(|value| value.as_secs_f64());
                    gauge(recorder, &key(series, &timer.label), value, set)
                }
                (Value::Lag(get), Figure::Lag(before)) => {
                    record(recorder, &key(series, &timer.label), get(timer), before)
                }
                _ => {}
            }
        }
    }

    /// Another timer comes under the label.
    fn follow(&mut self, number: u64) {
        self.number = number;
        for figure in &mut self.figures {
            match figure {
                Figure::Counter { earlier, current } => *earlier += std::mem::take(current),
                Figure::Gauge { .. } => {}
                Figure::Lag(before) => before.clear(),
            }
        }
    }

    /// The timer is gone.
    fn clear(&mut self, recorder: &dyn Recorder, label: &str) {
        self.gone = true;
        for (series, figure) in SERIES.iter().zip(&mut self.figures) {
            if let Figure::Gauge { set } = figure {
                gauge(recorder, &key(series, label), None, set);
            }
        }
    }
}

/// Records what a histogram has more than `before`, and makes that the new `before`.
fn record(recorder: &dyn Recorder, key: &Key, lag: &LagSnapshot, before: &mut Vec<u64>) {
    let now = counts(lag, ladder());
    before.resize(now.len(), 0);
    let new: Vec<u64> = now.iter().zip(&*before).map(|(now, before)| now.saturating_sub(*before)).collect();
    *before = now;
    let total: u64 = new.iter().sum();
    let histogram = recorder.register_histogram(key, &METADATA);
    for (bound, count) in ladder().chain([lag.max()]).zip(new).filter(|(_, count)| *count > 0) {
        let count = if total <= MOST_RECORDS { count } else { thinned(count, total) };
        histogram.record_many(bound.as_secs_f64(), usize::try_from(count).unwrap_or(usize::MAX));
    }
}

/// Without a value: zero, if an earlier one is to be seen. A bound or a delay that an earlier timer had is not this one's.
fn gauge(recorder: &dyn Recorder, key: &Key, value: Option<f64>, set: &mut bool) {
    let seen = std::mem::replace(set, value.is_some());
    if seen || value.is_some() {
        recorder.register_gauge(key, &METADATA).set(value.unwrap_or(0.0));
    }
}

/// The share of `count` in [`MOST_RECORDS`], but not nothing.
fn thinned(count: u64, total: u64) -> u64 {
    let share = u128::from(count) * u128::from(MOST_RECORDS) / u128::from(total.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}

/// Ten steps in each power of ten (the preferred numbers R10), from 1 us to 10,000 s.
fn ladder() -> impl Iterator<Item = Duration> {
    const STEPS: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
    let powers = (0..10).map(|power| 10_u64.pow(power) * 10);
    let steps = powers.flat_map(|power| STEPS.into_iter().map(move |step| step * power));
    steps.chain([10_000_000_000_000]).map(Duration::from_nanos)
}

fn key(series: &Series, label: &str) -> Key {
    Key::from_parts(series.name, vec![Label::new(LABEL, label.to_owned())])
}

fn describe(recorder: &dyn Recorder, series: &Series) {
    let (name, help) = (series.name.into(), series.help.into());
    match series.value {
        Value::Counter(_) => recorder.describe_counter(name, Some(Unit::Count), help),
        Value::Gauge(_) => recorder.describe_gauge(name, Some(Unit::Count), help),
        Value::Seconds(_) => recorder.describe_gauge(name, Some(Unit::Seconds), help),
        Value::Lag(_) => recorder.describe_histogram(name, Some(Unit::Seconds), help),
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_RECORDS, ladder, thinned};
    use crate::buckets::LAG_BUCKETS;
    use std::time::Duration;

    #[test]
    fn the_ladder_hits_every_exported_bound() {
        let ladder: Vec<Duration> = ladder().collect();
        assert_eq!((ladder[0], ladder[ladder.len() - 1]), (Duration::from_micros(1), Duration::from_secs(10_000)));
        for pair in ladder.windows(2) {
            let step = pair[1].as_secs_f64() / pair[0].as_secs_f64();
            assert!(step > 1.0 && step < 1.29, "{pair:?}");
        }
        assert!(LAG_BUCKETS.iter().all(|bound| ladder.contains(bound)));
    }

    #[test]
    fn thinning_keeps_the_shares_and_loses_no_size() {
        assert_eq!(thinned(500_000, 1_000_000), MOST_RECORDS / 2);
        assert_eq!(thinned(1, u64::MAX), 1);
        assert_eq!(thinned(u64::MAX, u64::MAX), MOST_RECORDS);
    }
}
