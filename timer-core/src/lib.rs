//! A timer facility for servers that hold millions of timeouts.
//!
//! A server holds a timeout for every request, connection, heartbeat and lease, and cancels or
//! moves nearly all of them before they run. With a [`Timer`], scheduling, cancelling and resetting
//! take O(1) time, and the cost of each call is bounded. Threads that schedule on different CPUs do
//! not contend. Every timeout is accounted for, because it either runs, is cancelled, or is
//! returned by [`Timer::stop`].
//!
//! ```
//! use std::time::Duration;
//! use timer_core::Timer;
//!
//! let timer = Timer::new();
//! let timeout = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply in 5 s"))?;
//! // The reply has arrived in time.
//! assert!(timeout.cancel());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [book] is the guide, from the first timeout to production. It covers traps, precision,
//! futures, shutdown, tests, retries, monitoring and bounds, and lists the names that other timers
//! have for the same calls.
//!
//! # How it works
//!
//! [`Timer::new_timeout`] turns a delay into a deadline, rounds it up to a tick, and links an entry
//! into a timing wheel. There is one wheel per CPU. The worker thread sleeps until the first tick
//! in which an entry is due, removes the due entries, and hands their tasks to the [executor]. By
//! default the tasks run on the worker ([`TimerBuilder::executor`]).
//!
//! A timer need not have a worker thread. A [`ManualDriver`] moves its time in tests, and a
//! [`Driver`] runs it in a program's own event loop. All three use the same engine. The wheels are
//! pure data structures and can be used alone, see [`wheel`].
//!
//! On `wasm32-unknown-unknown`, the module [`wheel`] is the whole crate, because everything else
//! needs threads or a clock. Drive a wheel with the timers of the browser (the crate
//! `gloo-timers`), or build for `wasm32-wasip1-threads`.
//!
//! # Promises
//!
//! - A task never runs early. A timeout without a delay runs at once.
//! - Every timeout ends exactly once. The counts are exact while no call is in progress.
//! - `cancel` drops the task before it returns.
//! - User code never runs under a lock.
//! - An idle timer wakes up at most once a day.
//! - Every delay is allowed.
//! - A panic of a task is caught, counted and traced, if the program unwinds on panics.
//!
//! The chapter [promises](book::promises) has all of them.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]
// The product reaches threads and locks through `sync` only. Tests may use them directly.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

// wasm32-unknown-unknown has neither threads nor a clock, so it has the wheels alone.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod alarm;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod backlog;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod backpressure;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub mod book;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod clock;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod config;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod counters;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod deadline;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub mod delay_queue;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod engine;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[allow(unsafe_code, reason = "the head of the module lists the invariants")]
mod entry;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod error;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub mod future;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod handle;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub mod lateness;
#[cfg(all(test, timer_loom))]
mod loom_models;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod resolution;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod shard;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod sync;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub mod time;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod timer_context;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod timetable;
#[cfg_attr(
    all(target_family = "wasm", target_os = "unknown"),
    allow(dead_code, unused_imports, reason = "the timer uses the rest")
)]
pub mod wheel;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod worker;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use config::{MissedTickBehavior, WheelKind};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use counters::{LagSnapshot, LateCause, LateRun, LateRuns, Lateness, TimerStats};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use engine::{StopReport, Unprocessed};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use entry::{Named, PeriodicTask, Timeout, TimerTask};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use error::{BuildError, DeadlockError, RejectReason, ScheduleError, StopError};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[doc(inline)]
pub use future::{Elapsed, Interval, Sleep, TimeoutFuture};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use handle::{CancelOnDrop, Driver, ManualDriver, Timer, TimerBuilder, Turn, WeakTimer};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[doc(no_inline)]
pub use timer_executor as executor;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use timetable::Timetable;

/// The parts of [`named!`] that its callers do not name.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[doc(hidden)]
pub mod __private {
    pub use crate::entry::TaskName;
}

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
