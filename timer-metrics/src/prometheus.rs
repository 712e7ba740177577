//! The timers in a registry of `prometheus-client`, the official client crate.
//!
//! One collector writes each metric family once, with the samples of every living timer, and leaves
//! out families without samples. The client appends `_total` and the unit to a name itself, so the
//! collector passes the name without them.

#[cfg(feature = "protobuf")]
use crate::native::NativeLag;
use crate::series::{Exported, Kind, LABEL, Sample, Series, TimerSet};
use crate::timer_metrics::TimerMetrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::time::Duration;
use timer_core::{LagSnapshot, LateRuns};

impl TimerMetrics {
    /// Adds this set to a registry. Timers that are watched later are exported as well.
    ///
    /// Each scrape costs as much as [`snapshots`](Self::snapshots) and produces about 5 kB of text
    /// per timer. The registry's prefix and labels apply. Register only one set in a registry, and
    /// only once, because the format does not allow a metric family to occur twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use prometheus_client::encoding::text::encode;
    /// use prometheus_client::registry::Registry;
    /// use timer_core::Timer;
    /// use timer_metrics::TimerMetrics;
    ///
    /// let metrics = TimerMetrics::new();
    /// let mut registry = Registry::default();
    /// metrics.register(&mut registry);
    ///
    /// let timer = Timer::builder().name("leases").build()?;
    /// metrics.watch(&timer);
    /// let mut text = String::new();
    /// encode(&mut text, &registry)?;
    /// assert!(text.contains("timer_timeouts_scheduled_total{timer=\"leases\"} 0\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(SeriesCollector(self.clone())));
    }

    /// Returns the timers of this set as OpenMetrics text, including the end mark. Use it for a
    /// log, or in your own HTTP server with the content type
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    ///
    /// # Errors
    ///
    /// Returns the error of the client's encoder. No case is known in which it fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_metrics::TimerMetrics;
    ///
    /// let timer = timer_core::Timer::new();
    /// let text = TimerMetrics::from_iter([&timer]).to_openmetrics()?;
    /// assert!(text.contains("timer_turns_total{timer=\"timer\"} 0\n") && text.ends_with("# EOF\n"));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    pub fn to_openmetrics(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// The series of a set of timers.
#[derive(Debug)]
pub(crate) struct SeriesCollector<S>(pub(crate) S);

impl<S: TimerSet> Collector for SeriesCollector<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let timers = self.0.timers();
        S::Timer::SERIES.iter().try_for_each(|series| family(&mut encoder, series, &timers))
    }
}

/// Writes a metric family with the samples of all timers, or nothing if there are none.
fn family<T: Exported>(encoder: &mut DescriptorEncoder<'_>, series: &Series<T>, timers: &[T]) -> fmt::Result {
    let samples = timers.iter().flat_map(|timer| timer.samples(&series.value).into_iter().map(move |of| (timer, of)));
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let kind = T::kind(&series.value);
    let metric_type = match kind {
        Kind::Counter | Kind::TimeCounter => MetricType::Counter,
        Kind::Gauge | Kind::TimeGauge => MetricType::Gauge,
        Kind::Histogram | Kind::LateRuns => MetricType::Histogram,
    };
    let stem = series.name.strip_suffix("_total").unwrap_or(series.name);
    let of_times = stem.strip_suffix("_seconds").filter(|_| kind.is_time());
    let (stem, unit) = of_times.map_or((stem, None), |stem| (stem, Some(Unit::Seconds)));
    let mut family = encoder.encode_descriptor(stem, series.help, unit.as_ref(), metric_type)?;
    for (timer, of) in samples {
        let further = of.labels.iter().map(|(name, value)| (*name, &**value));
        let labels: Vec<(&str, &str)> = [(LABEL, timer.label())].into_iter().chain(further).collect();
        write(family.encode_family(&labels)?, &of.value)?;
    }
    Ok(())
}

fn write(mut metric: MetricEncoder<'_>, sample: &Sample<'_>) -> fmt::Result {
    match sample {
        Sample::Counter(count) => metric.encode_counter::<NoLabelSet, u64, u64>(count, None),
        Sample::TimeCounter(time) => metric.encode_counter::<NoLabelSet, f64, f64>(&time.as_secs_f64(), None),
        Sample::Gauge(number) => metric.encode_gauge(number),
        Sample::TimeGauge(time) => metric.encode_gauge(&time.as_secs_f64()),
        Sample::Histogram(lag, bounds) => histogram(metric, lag, bounds),
        Sample::LateRuns(runs, cause) => {
            let buckets = buckets(&LateRuns::BOUNDS, runs.buckets(*cause));
            let sum = runs.sum(*cause).as_secs_f64();
            metric.encode_histogram::<NoLabelSet>(sum, runs.count(*cause), &buckets, None)
        }
    }
}

/// Returns each bucket with its bound. The encoder takes the count of each bucket alone and
/// accumulates them.
fn buckets(bounds: &[Duration], counts: &[u64]) -> Vec<(f64, u64)> {
    let bounds = bounds.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
    bounds.zip(counts.iter().copied()).collect()
}

fn histogram(mut metric: MetricEncoder<'_>, lag: &LagSnapshot, bounds: &[Duration]) -> fmt::Result {
    let buckets = buckets(bounds, &lag.counts(bounds.iter().copied()));
    let sum = lag.sum().as_secs_f64();
    // The encoder of text leaves the native buckets out.
    #[cfg(feature = "protobuf")]
    let native = NativeLag::of(lag);
    #[cfg(feature = "protobuf")]
    return metric.encode_histogram_with_native::<NoLabelSet>(sum, lag.count(), &buckets, None, native.fields());
    #[cfg(not(feature = "protobuf"))]
    metric.encode_histogram::<NoLabelSet>(sum, lag.count(), &buckets, None)
}
