//! Publishes the timers to the recorder that is installed for the facade `metrics`.
//!
//! The facade has counters, gauges and single observations, while a timer has counts and
//! histograms. The publisher therefore publishes counters as absolute values and sets gauges. For a
//! histogram it records the lags since the last call, each rounded up to a step of a fine ladder.

#[cfg(feature = "durable")]
mod durable;
mod published;

use crate::buckets::bucket_counts;
#[cfg(feature = "durable")]
use crate::durable::DurableMetrics;
use crate::series::{BOUND, CAUSE, LABEL, SERIES, Series, Value, due};
use crate::snapshot::TimerSnapshot;
use crate::timer_metrics::TimerMetrics;
use metrics::{Key, Label, Recorder, Unit};
use published::{Published, Sample};
use std::fmt;
use std::time::Duration;
use timer_core::LateCause;

/// A publisher of the timers of a [`TimerMetrics`] through the facade `metrics`, under the same
/// names as in Prometheus.
///
/// Counters are absolute values. The facade cannot remove a series, so when a timer is gone, its
/// gauges are set to zero once and its counters keep their values. Another timer under the same
/// label continues them. A bound or a longest delay of zero means that the timer has none.
///
/// The lateness by causes is a gauge, because the counters of the facade are integers. It rises as
/// a counter does, and keeps its value when the timer is gone. The histograms of late runs by
/// causes are not published.
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
    is_described: bool,
    published: Published,
    #[cfg(feature = "durable")]
    durable: Durable,
}

/// The durable timers of a publisher.
#[cfg(feature = "durable")]
#[derive(Default)]
struct Durable {
    metrics: DurableMetrics,
    is_described: bool,
    published: Published,
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
        Publisher {
            metrics: self.clone(),
            is_described: false,
            published: Published::default(),
            #[cfg(feature = "durable")]
            durable: Durable::default(),
        }
    }
}

impl Publisher {
    /// Adds durable timers. A later call replaces an earlier one.
    ///
    /// Their series are described by the first call of [`publish`](Self::publish) that finds a
    /// timer. Their lags have the buckets of [`BOUNDS`](timer_durable::BOUNDS), to which they are
    /// rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    /// use timer_metrics::{DurableMetrics, TimerMetrics};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let durable = DurableMetrics::new();
    /// durable.watch(&timer);
    /// let mut publisher = TimerMetrics::new().publisher().durable(&durable);
    /// publisher.publish();
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[cfg(feature = "durable")]
    #[cfg_attr(docsrs, doc(cfg(feature = "durable")))]
    #[must_use]
    pub fn durable(mut self, metrics: &DurableMetrics) -> Self {
        self.durable.metrics = metrics.clone();
        self
    }

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
        #[cfg(feature = "durable")]
        let durable_timers = self.durable.metrics.snapshots();
        metrics::with_recorder(|recorder| {
            if !std::mem::replace(&mut self.is_described, true) {
                SERIES.iter().for_each(|series| describe(recorder, series));
            }
            let timers = timers.iter().map(|timer| (timer.number, timer.label.as_str(), samples(timer)));
            self.published.publish(recorder, timers);
            #[cfg(feature = "durable")]
            {
                let Durable { is_described, published, .. } = &mut self.durable;
                if !durable_timers.is_empty() && !std::mem::replace(is_described, true) {
                    durable::describe(recorder);
                }
                let timers = durable_timers.iter();
                let timers = timers.map(|timer| (timer.number, timer.label.as_str(), durable::samples(timer)));
                published.publish(recorder, timers);
            }
        });
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

/// Returns the values of a timer. A gauge without a value is left out.
fn samples(timer: &TimerSnapshot) -> Vec<(Key, Sample)> {
    let mut samples = Vec::new();
    for series in SERIES {
        let key = |further: Option<(&'static str, &str)>| {
            let further = further.map(|(name, value)| Label::new(name, value.to_owned()));
            Key::from_parts(
                series.name,
                [Label::new(LABEL, timer.label.clone())].into_iter().chain(further).collect::<Vec<_>>(),
            )
        };
        let gauge = |value: f64| (key(None), Sample::Gauge(value));
        match series.value {
            Value::Counter(get) => samples.push((key(None), Sample::Counter(get(timer)))),
            Value::Gauge(get) => samples.extend(get(timer).map(|value| gauge(value as f64))),
            Value::Seconds(get) => samples.extend(get(timer).map(|value| gauge(value.as_secs_f64()))),
            Value::Causes(get) => samples.extend(LateCause::ALL.map(|cause| {
                (key(Some((CAUSE, cause.as_str()))), Sample::Seconds(get(timer).part(cause).as_secs_f64()))
            })),
            Value::Due => samples.extend(
                due(timer).map(|(bound, count)| (key(Some((BOUND, bound.as_str()))), Sample::Gauge(count as f64))),
            ),
            Value::LateRuns => {}
            Value::Lag(get) => {
                let lag = get(timer);
                let lags = ladder().chain([lag.max()]).zip(bucket_counts(lag, ladder())).collect();
                samples.push((key(None), Sample::Lags(lags)));
            }
        }
    }
    samples
}

/// Returns the steps of the ladder: ten in each power of ten (the preferred numbers R10), from 1 us
/// to 10,000 s.
fn ladder() -> impl Iterator<Item = Duration> {
    const STEPS: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
    let powers = (0..10).map(|power| 10_u64.pow(power) * 10);
    let steps = powers.flat_map(|power| STEPS.into_iter().map(move |step| step * power));
    steps.chain([10_000_000_000_000]).map(Duration::from_nanos)
}

fn describe(recorder: &dyn Recorder, series: &Series) {
    let name = series.name.into();
    let help = series.help.into();
    match series.value {
        Value::Counter(_) => recorder.describe_counter(name, Some(Unit::Count), help),
        Value::Gauge(_) | Value::Due => recorder.describe_gauge(name, Some(Unit::Count), help),
        Value::Seconds(_) | Value::Causes(_) => recorder.describe_gauge(name, Some(Unit::Seconds), help),
        Value::Lag(_) => recorder.describe_histogram(name, Some(Unit::Seconds), help),
        Value::LateRuns => {}
    }
}

#[cfg(test)]
mod tests {
    use super::ladder;
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
}
