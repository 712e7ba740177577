//! Durable timers in a registry of `prometheus-client`.

use super::DurableMetrics;
use super::series::{Kind, Labeled, SERIES, Sample, Series};
use super::snapshot::DurableSnapshot;
use crate::series::LABEL;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::time::Duration;
use timer_durable::BOUNDS;

impl DurableMetrics {
    /// Adds this set to a registry. Timers that are watched later are exported as well. A scrape
    /// makes the stores count what is due, and reads nothing else from them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(DurableCollector { metrics: self.clone() }));
    }
}

#[derive(Debug)]
struct DurableCollector {
    metrics: DurableMetrics,
}

impl Collector for DurableCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let timers = self.metrics.snapshots();
        SERIES.iter().try_for_each(|series| write(&mut encoder, series, &timers))
    }
}

/// Writes a family with the samples of all timers, or nothing if there are none.
fn write(encoder: &mut DescriptorEncoder<'_>, series: &Series, timers: &[DurableSnapshot]) -> fmt::Result {
    let samples = timers.iter().flat_map(|timer| series.samples(timer).into_iter().map(|of| (&timer.label, of)));
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let kind = match series.kind() {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    // The client appends them again.
    let stem = series.name.strip_suffix("_total").unwrap_or(series.name);
    let of_times = stem.strip_suffix("_seconds").filter(|_| series.is_in_seconds());
    let (stem, unit) = of_times.map_or((stem, None), |stem| (stem, Some(Unit::Seconds)));
    let mut family = encoder.encode_descriptor(stem, series.help, unit.as_ref(), kind)?;
    for (timer, Labeled { labels: further, value }) in samples {
        let labels: Vec<(&str, &str)> = [(LABEL, timer.as_str())].into_iter().chain(further).collect();
        let mut metric = family.encode_family(&labels)?;
        match value {
            Sample::Counter(count) => metric.encode_counter::<NoLabelSet, u64, u64>(&count, None)?,
            Sample::Time(time) => metric.encode_counter::<NoLabelSet, f64, f64>(&time.as_secs_f64(), None)?,
            Sample::Gauge(number) => metric.encode_gauge(&number)?,
            Sample::Age(age) => metric.encode_gauge(&age.as_secs_f64())?,
            Sample::Histogram(histogram) => {
                let bounds = BOUNDS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
                let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts).collect();
                let sum = histogram.sum.as_secs_f64();
                metric.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets, None)?;
            }
        }
    }
    Ok(())
}
