//! The adapters with the crates that they are for, on sockets and on virtual time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod auto_traits;
mod differential;
mod foreign;
mod hyper;
mod limits;
mod quinn;
mod running_clock;
mod stream;
mod tokio;
mod tonic;
mod tower;

use std::time::Duration;

/// A deadline that only a broken test reaches.
const LONG: Duration = Duration::from_secs(30);

/// A runtime without tokio's own timer, so that a test fails if anything uses that.
fn runtime() -> ::tokio::runtime::Runtime {
    ::tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap()
}
