//! The samples of durable timers for the facade.

use super::published::Sample;
use crate::durable::DurableSnapshot;
use crate::durable::series::{self, Kind, SERIES};
use crate::series::LABEL;
use metrics::{Key, Label, Recorder, Unit};
use timer_durable::BOUNDS;

pub(super) fn describe(recorder: &dyn Recorder) {
    for series in SERIES {
        let name = series.name.into();
        let help = series.help.into();
        let unit = if series.is_in_seconds() { Unit::Seconds } else { Unit::Count };
        match series.kind() {
            // The counters of the facade are integers.
            Kind::Counter if unit == Unit::Count => recorder.describe_counter(name, Some(unit), help),
            Kind::Counter | Kind::Gauge => recorder.describe_gauge(name, Some(unit), help),
            Kind::Histogram => recorder.describe_histogram(name, Some(unit), help),
        }
    }
}

pub(super) fn samples(timer: &DurableSnapshot) -> Vec<(Key, Sample)> {
    let of_series = |series: &'static series::Series| {
        series.samples(timer).into_iter().map(|of| {
            let labels = [(LABEL, timer.label.as_str())].into_iter().chain(of.labels);
            let labels: Vec<Label> = labels.map(|(name, value)| Label::new(name, value.to_owned())).collect();
            let sample = match of.value {
                series::Sample::Counter(count) => Sample::Counter(count),
                series::Sample::Time(time) => Sample::Seconds(time.as_secs_f64()),
                series::Sample::Gauge(number) => Sample::Gauge(number as f64),
                series::Sample::Age(age) => Sample::Gauge(age.as_secs_f64()),
                series::Sample::Histogram(lags) => {
                    Sample::Lags(BOUNDS.into_iter().chain([lags.max]).zip(lags.counts).collect())
                }
            };
            (Key::from_parts(series.name, labels), sample)
        })
    };
    SERIES.iter().flat_map(of_series).collect()
}
