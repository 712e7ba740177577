//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    timer_metrics::TimerMetrics: 1 1 1 1,
    timer_metrics::TimerSnapshot: 1 1 1 1,
    timer_metrics::Watch: 1 1 1 1,
}

#[cfg(feature = "durable")]
auto_traits! {
    timer_metrics::DurableMetrics: 1 1 1 1,
    timer_metrics::DurableSnapshot: 1 1 1 1,
}

#[cfg(feature = "metrics")]
auto_traits! {
    timer_metrics::Publisher: 1 1 1 1,
}
