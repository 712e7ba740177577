//! A recorder for the facade that keeps the published values.

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Kept {
    /// The values by `name{label}`. A counter keeps the higher of two absolute values, as the
    /// facade requires.
    pub(crate) values: BTreeMap<String, f64>,
    /// The recorded values with their counts.
    pub(crate) records: BTreeMap<String, Vec<(f64, usize)>>,
    /// The name, kind and unit of each described series.
    pub(crate) described: Vec<(String, &'static str, Option<Unit>)>,
}

#[derive(Clone, Default)]
pub(crate) struct Keeper(pub(crate) Arc<Mutex<Kept>>);

struct Handle {
    key: String,
    kept: Arc<Mutex<Kept>>,
}

impl Keeper {
    fn handle(&self, key: &Key) -> Arc<Handle> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Handle { key: format!("{}{{{}}}", key.name(), labels.join(",")), kept: self.0.clone() })
    }

    fn describe(&self, name: &KeyName, kind: &'static str, unit: Option<Unit>) {
        self.0.lock().unwrap().described.push((name.as_str().to_owned(), kind, unit));
    }

    pub(crate) fn value(&self, key: &str) -> Option<f64> {
        self.0.lock().unwrap().values.get(key).copied()
    }

    /// Removes and returns the records of a histogram.
    pub(crate) fn take_records(&self, key: &str) -> Vec<(f64, usize)> {
        self.0.lock().unwrap().records.remove(key).unwrap_or_default()
    }
}

impl Recorder for Keeper {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "counter", unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "gauge", unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "histogram", unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.handle(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.handle(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.handle(key))
    }
}

impl CounterFn for Handle {
    fn increment(&self, _: u64) {
        panic!("counters are published as absolute values");
    }

    fn absolute(&self, value: u64) {
        let mut kept = self.kept.lock().unwrap();
        let highest = kept.values.entry(self.key.clone()).or_default();
        *highest = highest.max(value as f64);
    }
}

impl GaugeFn for Handle {
    fn increment(&self, _: f64) {
        panic!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        panic!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.kept.lock().unwrap().values.insert(self.key.clone(), value);
    }
}

impl HistogramFn for Handle {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.kept.lock().unwrap().records.entry(self.key.clone()).or_default().push((value, count));
    }
}
