//! What the exporters write, read back by parsers of the tests' own, for timers on virtual time with known counts.
#![allow(clippy::unwrap_used, reason = "only tests use this")]
#![forbid(unsafe_code)]

#[cfg(feature = "prometheus")]
mod dashboards;
#[cfg(feature = "http")]
mod end_to_end;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "prometheus")]
mod openmetrics;
mod snapshots;
mod support;
