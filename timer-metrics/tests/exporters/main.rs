//! Tests that read the exporters' output back with independent parsers, for timers on virtual time
//! with known counts.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]
#![forbid(unsafe_code)]

mod auto_traits;
#[cfg(feature = "prometheus")]
mod dashboards;
#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "prometheus")]
mod openmetrics;
#[cfg(feature = "metrics")]
mod recorder;
mod snapshots;
mod support;
