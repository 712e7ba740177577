//! Tests that read the exporters' output back with independent parsers, for timers on virtual time
//! with known counts.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]
#![forbid(unsafe_code)]

#[cfg(all(feature = "http", feature = "durable"))]
mod actions;
mod auto_traits;
#[cfg(feature = "prometheus")]
mod dashboards;
#[cfg(all(feature = "http", target_os = "linux"))]
mod descriptors;
#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "http")]
mod end_to_end;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod live;
#[cfg(all(feature = "http", feature = "protobuf"))]
mod native;
#[cfg(feature = "prometheus")]
mod openmetrics;
mod snapshots;
mod support;
