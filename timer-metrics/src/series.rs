//! Tables of exported series. Every exporter takes names, units, descriptions and values from them.

use std::borrow::Cow;
use std::time::Duration;
use timer_core::lateness::Cause;
use timer_core::{LagSnapshot, LateCause, LateRuns};

/// The name of the label that every series has.
pub(crate) const LABEL: &str = "timer";

/// The name of the label of series that have one number for each cause.
const CAUSE: &str = "cause";

/// The name of the label with the bound of a cumulative number.
pub(crate) const BOUND: &str = "le";

/// A set of timers with a table of series.
pub(crate) trait TimerSet: Clone + std::fmt::Debug + Send + Sync + 'static {
    type Timer: Exported;

    /// Returns a snapshot of every living timer of the set.
    fn timers(&self) -> Vec<Self::Timer>;
}

/// The snapshot of a timer with a table of series.
pub(crate) trait Exported: Sized + 'static {
    /// The function that reads the values of a series.
    type Value;

    /// All series, in the order in which they are exported.
    const SERIES: &'static [Series<Self>];

    /// Returns the value of the label `timer`.
    fn label(&self) -> &str;

    /// Returns the number of this timer among all that were ever watched.
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "for exporters with a memory"))]
    fn number(&self) -> u64;

    fn kind(value: &Self::Value) -> Kind;

    fn samples(&self, value: &Self::Value) -> Vec<Labeled<'_>>;
}

/// One series, exported for every timer.
pub(crate) struct Series<T: Exported> {
    pub(crate) name: &'static str,
    /// A sentence without characters that need escaping.
    pub(crate) help: &'static str,
    pub(crate) value: T::Value,
}

/// The type of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that only rises while the timer lives. The name ends in `_total`.
    Counter,
    /// A time that only rises. The name ends in `_seconds_total`.
    TimeCounter,
    /// A number that may fall.
    Gauge,
    /// A time that may fall. The name ends in `_seconds`.
    TimeGauge,
    /// The name ends in `_seconds`.
    Histogram,
    /// The name ends in `_seconds`. The facade has no call that takes a histogram, so it leaves
    /// these out.
    LateRuns,
}

impl Kind {
    pub(crate) fn is_time(self) -> bool {
        !matches!(self, Self::Counter | Self::Gauge)
    }
}

/// A value of a series, with the labels beside that of the timer.
pub(crate) struct Labeled<'t> {
    pub(crate) labels: Vec<(&'static str, Cow<'t, str>)>,
    pub(crate) value: Sample<'t>,
}

/// A value of each [`Kind`].
pub(crate) enum Sample<'t> {
    Counter(u64),
    TimeCounter(Duration),
    Gauge(u64),
    TimeGauge(Duration),
    /// A histogram with the bounds of its classic buckets.
    Histogram(&'t LagSnapshot, &'static [Duration]),
    #[cfg_attr(not(feature = "prometheus"), allow(dead_code, reason = "the facade leaves them out"))]
    LateRuns(&'t LateRuns, LateCause),
}

/// Returns the value of a series that has one for each timer, or none.
pub(crate) fn single<'t>(value: impl Into<Option<Sample<'t>>>) -> Vec<Labeled<'t>> {
    value.into().map(|value| Labeled { labels: Vec::new(), value }).into_iter().collect()
}

/// Returns one value for each cause.
pub(crate) fn by_cause<'t, C: Cause>(value: impl Fn(C) -> Sample<'t>) -> Vec<Labeled<'t>> {
    let of_cause = |cause: &C| Labeled { labels: vec![(CAUSE, cause.to_string().into())], value: value(*cause) };
    C::CAUSES.iter().map(of_cause).collect()
}
