//! Publishes the timers to the recorder that is installed for the facade `metrics`.
//!
//! The facade has counters, gauges and single observations, while a timer has counts and
//! histograms. The publisher therefore publishes counters as absolute values and sets gauges. For a
//! histogram it records the lags since the last call, each rounded up to a step of a fine ladder.

mod published;

#[cfg(feature = "durable")]
use crate::durable::DurableMetrics;
use crate::series;
use crate::series::{Exported, Kind, LABEL, Labeled, Series, TimerSet};
use crate::timer_metrics::TimerMetrics;
use metrics::{Key, Label, Recorder, Unit};
use published::{Published, Sample};
use std::fmt;
use std::time::Duration;

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
    timers: PublishedSet<TimerMetrics>,
    #[cfg(feature = "durable")]
    durable: PublishedSet<DurableMetrics>,
}

/// A set of timers, and the state of it that was published.
#[derive(Default)]
struct PublishedSet<S> {
    metrics: S,
    is_described: bool,
    published: Published,
}

impl<S: TimerSet> PublishedSet<S> {
    fn describe(&mut self, recorder: &dyn Recorder) {
        if !std::mem::replace(&mut self.is_described, true) {
            S::Timer::SERIES.iter().for_each(|series| describe(recorder, series));
        }
    }

    fn publish(&mut self, recorder: &dyn Recorder, timers: &[S::Timer]) {
        let timers = timers.iter().map(|timer| (timer.number(), timer.label(), samples(timer)));
        self.published.publish(recorder, timers);
    }
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
            timers: PublishedSet { metrics: self.clone(), ..PublishedSet::default() },
            #[cfg(feature = "durable")]
            durable: PublishedSet::default(),
        }
    }
}

impl Publisher {
    /// Adds durable timers. A later call replaces an earlier one.
    ///
    /// Their series are described by the first call of [`publish`](Self::publish) that finds a
    /// timer. All of [`BOUNDS`](timer_durable::BOUNDS) are steps to which their lags are rounded up.
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
        let timers = self.timers.metrics.timers();
        #[cfg(feature = "durable")]
        let durable_timers = self.durable.metrics.timers();
        metrics::with_recorder(|recorder| {
            self.timers.describe(recorder);
            self.timers.publish(recorder, &timers);
            #[cfg(feature = "durable")]
            {
                if !durable_timers.is_empty() {
                    self.durable.describe(recorder);
                }
                self.durable.publish(recorder, &durable_timers);
            }
        });
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("metrics", &self.timers.metrics).finish_non_exhaustive()
    }
}

/// Returns the values of a timer.
fn samples<T: Exported>(timer: &T) -> Vec<(Key, Sample)> {
    let of_series = |series: &'static Series<T>| {
        timer.samples(&series.value).into_iter().filter_map(|Labeled { labels, value }| {
            let labels = labels.into_iter().map(|(name, value)| Label::new(name, value.into_owned()));
            let labels: Vec<Label> = [Label::new(LABEL, timer.label().to_owned())].into_iter().chain(labels).collect();
            let sample = match value {
                series::Sample::Counter(count) => Sample::Counter(count),
                series::Sample::TimeCounter(time) => Sample::Seconds(time.as_secs_f64()),
                series::Sample::Gauge(number) => Sample::Gauge(number as f64),
                series::Sample::TimeGauge(time) => Sample::Gauge(time.as_secs_f64()),
                series::Sample::Histogram(lag, bounds) => {
                    let steps = steps(bounds);
                    let counts = lag.counts(steps.iter().copied());
                    Sample::Lags(steps.into_iter().chain([lag.max()]).zip(counts).collect())
                }
                series::Sample::LateRuns(..) => return None,
            };
            Some((Key::from_parts(series.name, labels), sample))
        })
    };
    T::SERIES.iter().flat_map(of_series).collect()
}

/// Returns the steps of the ladder and these bounds in ascending order.
fn steps(bounds: &[Duration]) -> Vec<Duration> {
    let mut steps: Vec<Duration> = ladder().chain(bounds.iter().copied()).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Returns the steps of the ladder: ten in each power of ten (the preferred numbers R10), from 1 us
/// to 10,000 s.
fn ladder() -> impl Iterator<Item = Duration> {
    const STEPS: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
    let powers = (0..10).map(|power| 10_u64.pow(power) * 10);
    let steps = powers.flat_map(|power| STEPS.into_iter().map(move |step| step * power));
    steps.chain([10_000_000_000_000]).map(Duration::from_nanos)
}

fn describe<T: Exported>(recorder: &dyn Recorder, series: &Series<T>) {
    let name = series.name.into();
    let help = series.help.into();
    let kind = T::kind(&series.value);
    let unit = Some(if kind.is_time() { Unit::Seconds } else { Unit::Count });
    match kind {
        Kind::Counter => recorder.describe_counter(name, unit, help),
        // The counters of the facade are integers.
        Kind::TimeCounter | Kind::Gauge | Kind::TimeGauge => recorder.describe_gauge(name, unit, help),
        Kind::Histogram => recorder.describe_histogram(name, unit, help),
        Kind::LateRuns => {}
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
