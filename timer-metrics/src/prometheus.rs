//! The timers in a registry of `prometheus-client`, the official client crate.
//!
//! One collector writes each metric family once, with a sample for every living timer, and leaves
//! out families without samples. The client appends `_total` and the unit to a name itself, so the
//! collector passes the name without them.

use crate::buckets::{LAG_BUCKETS, bucket_counts};
#[cfg(feature = "protobuf")]
use crate::native::NativeLag;
use crate::series::{BOUND, CAUSE, LABEL, SERIES, Series, Value, due};
use crate::snapshot::TimerSnapshot;
use crate::timer_metrics::TimerMetrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::time::Duration;
use timer_core::{LagSnapshot, LateCause, LateRuns};

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
        registry.register_collector(Box::new(TimerCollector { metrics: self.clone() }));
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

#[derive(Debug)]
struct TimerCollector {
    metrics: TimerMetrics,
}

impl Collector for TimerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let timers = self.metrics.snapshots();
        SERIES.iter().try_for_each(|series| encode(series, &timers, &mut encoder))
    }
}

fn encode(series: &Series, timers: &[TimerSnapshot], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    match series.value {
        Value::Counter(get) => {
            let stem = series.name.strip_suffix("_total").unwrap_or(series.name);
            let samples = timers.iter().map(|timer| (timer, get(timer)));
            family(encoder, (stem, series.help), None, MetricType::Counter, samples, |mut metric, value| {
                metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
            })
        }
        Value::Gauge(get) => {
            let samples = timers.iter().filter_map(|timer| Some((timer, get(timer)?)));
            family(encoder, (series.name, series.help), None, MetricType::Gauge, samples, |mut metric, value| {
                metric.encode_gauge(&value)
            })
        }
        Value::Seconds(get) => {
            let samples = timers.iter().filter_map(|timer| Some((timer, get(timer)?)));
            let unit = Some(Unit::Seconds);
            family(encoder, in_seconds(series), unit, MetricType::Gauge, samples, |mut metric, value: Duration| {
                metric.encode_gauge(&value.as_secs_f64())
            })
        }
        Value::Due if timers.is_empty() => Ok(()),
        Value::Due => {
            let mut metric = encoder.encode_descriptor(series.name, series.help, None, MetricType::Gauge)?;
            for (timer, (bound, count)) in timers.iter().flat_map(|timer| due(timer).map(move |due| (timer, due))) {
                metric.encode_family(&[(LABEL, timer.label.as_str()), (BOUND, &bound)])?.encode_gauge(&count)?;
            }
            Ok(())
        }
        Value::Causes(get) => {
            let stem = series.name.strip_suffix("_seconds_total").unwrap_or(series.name);
            by_cause(encoder, (stem, series.help), MetricType::Counter, timers, |mut metric, timer, cause| {
                let seconds = get(timer).part(cause).as_secs_f64();
                metric.encode_counter::<NoLabelSet, f64, f64>(&seconds, None)
            })
        }
        Value::LateRuns => {
            by_cause(encoder, in_seconds(series), MetricType::Histogram, timers, |mut metric, timer, cause| {
                let bounds = LateRuns::BOUNDS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
                let runs = &timer.stats.late_runs;
                let buckets: Vec<(f64, u64)> = bounds.zip(*runs.buckets(cause)).collect();
                let sum = runs.sum(cause).as_secs_f64();
                let count = runs.count(cause);
                metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
            })
        }
        Value::Lag(get) => {
            let samples = timers.iter().map(|timer| (timer, get(timer)));
            family(encoder, in_seconds(series), Some(Unit::Seconds), MetricType::Histogram, samples, histogram)
        }
    }
}

fn in_seconds(series: &Series) -> (&'static str, &'static str) {
    (series.name.strip_suffix("_seconds").unwrap_or(series.name), series.help)
}

/// Writes a metric family with one metric for each sample, or nothing if there are no samples.
fn family<'a, T>(
    encoder: &mut DescriptorEncoder<'_>,
    (stem, help): (&str, &str),
    unit: Option<Unit>,
    kind: MetricType,
    samples: impl Iterator<Item = (&'a TimerSnapshot, T)>,
    encode: impl Fn(MetricEncoder<'_>, T) -> fmt::Result,
) -> fmt::Result {
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(stem, help, unit.as_ref(), kind)?;
    for (timer, value) in samples {
        encode(metric.encode_family(&[(LABEL, timer.label.as_str())])?, value)?;
    }
    Ok(())
}

/// Writes a metric family in seconds with one metric for each timer and cause, or nothing if there
/// are no timers.
fn by_cause(
    encoder: &mut DescriptorEncoder<'_>,
    (stem, help): (&str, &str),
    kind: MetricType,
    timers: &[TimerSnapshot],
    encode: impl Fn(MetricEncoder<'_>, &TimerSnapshot, LateCause) -> fmt::Result,
) -> fmt::Result {
    if timers.is_empty() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(stem, help, Some(&Unit::Seconds), kind)?;
    for (timer, cause) in timers.iter().flat_map(|timer| LateCause::ALL.map(|cause| (timer, cause))) {
        encode(metric.encode_family(&[(LABEL, timer.label.as_str()), (CAUSE, cause.as_str())])?, timer, cause)?;
    }
    Ok(())
}

fn histogram(mut metric: MetricEncoder<'_>, lag: &LagSnapshot) -> fmt::Result {
    let bounds = LAG_BUCKETS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
    // The encoder takes the count of each bucket alone and accumulates them.
    let buckets: Vec<(f64, u64)> = bounds.zip(bucket_counts(lag, LAG_BUCKETS)).collect();
    let sum = lag.sum().as_secs_f64();
    let count = lag.count();
    // The encoder of text leaves the native buckets out.
    #[cfg(feature = "protobuf")]
    return metric.encode_histogram_with_native::<NoLabelSet>(sum, count, &buckets, None, NativeLag::of(lag).fields());
    #[cfg(not(feature = "protobuf"))]
    metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}
