//! Tests of the server and of the page, on raw sockets and without a browser.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test panics on an unexpected error")]
#![forbid(unsafe_code)]

#[cfg(feature = "durable")]
mod actions;
mod auto_traits;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(feature = "durable")]
mod durable;
mod end_to_end;
mod http;
mod live;
#[cfg(feature = "protobuf")]
mod native;
#[path = "../../../timer-metrics/tests/exporters/support/mod.rs"]
mod support;
