//! Publishes the timers to the recorder that is installed for the facade `metrics`.
//!
//! The facade has counters, gauges and single observations, while a timer has counts and
//! histograms. The publisher therefore publishes counters as absolute values and sets gauges. For a
//! histogram it records the lags since the last call, each rounded up to a step of a fine ladder.

use crate::buckets::counts;
use crate::series::{CAUSE, LABEL, SERIES, Series, Value};
use crate::snapshot::TimerSnapshot;
use crate::timer_metrics::TimerMetrics;
use metrics::{Key, Label, Level, Metadata, Recorder, Unit};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;
use timer_core::{LagSnapshot, LateCause};

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The number of new lags of one histogram above which a call records a sample in proportion.
const MAX_RECORDS: u64 = 10_000;

/// A publisher of the timers of a [`TimerMetrics`] through the facade `metrics`, under the same
/// names as in Prometheus.
///
/// Counters are absolute values. The facade cannot remove a series, so when a timer is gone, its
/// gauges are set to zero once and its counters keep their values. Another timer under the same
/// label continues them. A bound or a longest delay of zero means that the timer has none.
///
/// The lateness by causes is a gauge, because the counters of the facade are integers. It keeps its
/// value when the timer is gone. The histograms of late runs by causes are not published.
///
/// Lags are histograms in seconds. Each call records the lags since the last call, each rounded up
/// by at most 28 %, or to 1 us if it is shorter. Bounds such as 10, 25, 50 and 100 us are steps of
/// the ladder, so buckets with these bounds are as exact as in Prometheus. If there are more than
/// 10,000 new lags, the call records a proportional sample with at least one lag of each size, so
/// that it stays short. `timer_runs_total` has the exact number.
///
/// # Examples
///
/// A timeout of the timer itself can publish. The publisher does not keep the timer alive:
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

/// The published state of a label.
struct Published {
    /// The number of the timer that has the label.
    number: u64,
    gone: bool,
    /// One figure for each of the series.
    figures: Vec<Figure>,
}

enum Figure {
    /// The counts of earlier timers under the label, and of the current one.
    Counter { earlier: u64, current: u64 },
    /// A gauge, and whether it has a value that was not cleared since.
    Gauge { set: bool },
    /// The number of lags of each size that were recorded of the current timer.
    Lag(Vec<u64>),
    /// The series is left out.
    Absent,
}

impl TimerMetrics {
    /// Creates a publisher of the timers of this set.
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
    /// Publishes the current state of all timers.
    ///
    /// Install the recorder before the first call. That call also describes the series, and lags
    /// published without a recorder are not recorded later.
    ///
    /// Costs as much as [`TimerMetrics::snapshots`] plus the recorder's own time for each timer's
    /// three lags, each with at most 10,000 records and one more per size. A panic of the recorder
    /// propagates to the caller.
    ///
    /// # Examples
    ///
    /// ```
    /// let timer = timer_core::Timer::new();
    /// let mut publisher = timer_metrics::TimerMetrics::from_iter([&timer]).publisher();
    /// // The recorder serves this call only. An application installs one globally.
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
            Value::Gauge(_) | Value::Seconds(_) | Value::Causes(_) => Figure::Gauge { set: false },
            Value::Lag(_) => Figure::Lag(Vec::new()),
            Value::LateRuns(_) => Figure::Absent,
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
                (Value::Causes(get), Figure::Gauge { .. }) => {
                    for cause in LateCause::ALL {
                        let labels = [(LABEL, timer.label.clone()), (CAUSE, cause.as_str().to_owned())];
                        let key =
                            Key::from_parts(series.name, labels.map(|(name, value)| Label::new(name, value)).to_vec());
                        recorder.register_gauge(&key, &METADATA).set(get(timer).part(cause).as_secs_f64());
                    }
                }
                (Value::Lag(get), Figure::Lag(before)) => {
                    record(recorder, &key(series, &timer.label), get(timer), before)
                }
                _ => {}
            }
        }
    }

    /// Continues the series with a new timer under the same label.
    fn follow(&mut self, number: u64) {
        self.number = number;
        for figure in &mut self.figures {
            match figure {
                Figure::Counter { earlier, current } => *earlier += std::mem::take(current),
                Figure::Gauge { .. } | Figure::Absent => {}
                Figure::Lag(before) => before.clear(),
            }
        }
    }

    /// Sets the gauges to zero after the timer is gone.
    fn clear(&mut self, recorder: &dyn Recorder, label: &str) {
        self.gone = true;
        for (series, figure) in SERIES.iter().zip(&mut self.figures) {
            if let Figure::Gauge { set } = figure {
                gauge(recorder, &key(series, label), None, set);
            }
        }
    }
}

/// Records the lags that were added since `before`, and updates `before`.
fn record(recorder: &dyn Recorder, key: &Key, lag: &LagSnapshot, before: &mut Vec<u64>) {
    let now = counts(lag, ladder());
    before.resize(now.len(), 0);
    let new: Vec<u64> = now.iter().zip(&*before).map(|(now, before)| now.saturating_sub(*before)).collect();
    *before = now;
    let total: u64 = new.iter().sum();
    let histogram = recorder.register_histogram(key, &METADATA);
    for (bound, count) in ladder().chain([lag.max()]).zip(new).filter(|(_, count)| *count > 0) {
        let count = if total <= MAX_RECORDS { count } else { thinned(count, total) };
        histogram.record_many(bound.as_secs_f64(), usize::try_from(count).unwrap_or(usize::MAX));
    }
}

/// Sets a gauge. Without a value, sets it to zero if an earlier value is visible, so that a timer
/// does not inherit the bound of an earlier one.
fn gauge(recorder: &dyn Recorder, key: &Key, value: Option<f64>, set: &mut bool) {
    let seen = std::mem::replace(set, value.is_some());
    if seen || value.is_some() {
        recorder.register_gauge(key, &METADATA).set(value.unwrap_or(0.0));
    }
}

/// Returns the share of `count` in [`MAX_RECORDS`], at least 1.
fn thinned(count: u64, total: u64) -> u64 {
    let share = u128::from(count) * u128::from(MAX_RECORDS) / u128::from(total.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}

/// Returns the steps of the ladder: ten in each power of ten (the preferred numbers R10), from 1 us
/// to 10,000 s.
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
        Value::Seconds(_) | Value::Causes(_) => recorder.describe_gauge(name, Some(Unit::Seconds), help),
        Value::Lag(_) => recorder.describe_histogram(name, Some(Unit::Seconds), help),
        Value::LateRuns(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_RECORDS, ladder, thinned};
    use crate::buckets::LAG_BUCKETS;
    use std::time::Duration;

    #[test]
    fn ladder_contains_every_exported_bound() {
        let ladder: Vec<Duration> = ladder().collect();
        assert_eq!((ladder[0], ladder[ladder.len() - 1]), (Duration::from_micros(1), Duration::from_secs(10_000)));
        for pair in ladder.windows(2) {
            let step = pair[1].as_secs_f64() / pair[0].as_secs_f64();
            assert!(step > 1.0 && step < 1.29, "{pair:?}");
        }
        assert!(LAG_BUCKETS.iter().all(|bound| ladder.contains(bound)));
    }

    #[test]
    fn steps_of_the_ladder_are_preferred_numbers() {
        for (index, step) in ladder().enumerate() {
            let exact = 1e-6 * 10_f64.powf(index as f64 / 10.0);
            assert!((step.as_secs_f64() / exact - 1.0).abs() < 0.013, "{step:?} beside {exact}");
        }
    }

    #[test]
    fn thinning_keeps_shares_and_every_size() {
        assert_eq!(thinned(500_000, 1_000_000), MAX_RECORDS / 2);
        assert_eq!(thinned(1, u64::MAX), 1);
        assert_eq!(thinned(u64::MAX, u64::MAX), MAX_RECORDS);
    }
}
