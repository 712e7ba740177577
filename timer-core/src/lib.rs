//! Millions of timeouts at O(1): the timer of this workspace.
//!
//! A server holds a timeout for every request, connection, heartbeat and lease, and cancels or
//! moves nearly all of them before they run. [`Timer`] makes schedule, cancel and reset cost O(1),
//! keeps threads on different CPUs apart and all that a call does bounded, and accounts for every
//! timeout exactly: it runs, is cancelled, or is handed back by [`Timer::stop`].
//!
//! ```
//! use std::time::Duration;
//! use timer_core::Timer;
//!
//! let timer = Timer::new();
//! let deadline = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply in 5 s"))?;
//! // The reply is here:
//! assert!(deadline.cancel());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **The [book]** says how to use it, from the first timeout to the last: traps, choosing,
//! precision, futures, shutting down, testing, retries, watching, bounds, and what other timers'
//! calls are called here.
//!
//! The way of the data: [`Timer::new_timeout`] turns a delay into a deadline and a tick (rounded
//! up) and links an entry into the wheel of the shard of the caller's CPU; the worker sleeps until
//! the first tick with something in it, takes out what is due, wins each timeout's state against
//! `cancel` and `reset`, and hands it to the [executor]. Where tasks run is chosen at construction
//! ([`TimerBuilder::executor`]). Time can also be driven by hand ([`ManualDriver`], for tests on
//! virtual time) or by an event loop of your own ([`Driver`]): all three are the same engine.
//!
//! The wheels themselves are pure data structures and can be embedded alone: see [`wheel`].
//!
//! *What is promised*: never early, whatever the tick; what is due already runs now; exactly one
//! end; exact counts at quiet; `cancel` frees the task before it returns; user code never runs
//! under a lock; nothing due, nothing woken; any delay is fine. A panic of a task is caught,
//! counted and traced (with `panic = "unwind"`).

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]
#![cfg_attr(timer_shuttle, allow(dead_code, unused_imports, reason = "loom's models use more of it"))]
// What ships goes through the facade `sync`; tests may name threads and locks as they are.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
compile_error!(
    "timer-core needs threads and a monotonic clock, which wasm32-unknown-unknown does not have; use the timers of the \
     browser (the crate `gloo-timers`), or the target wasm32-wasip1-threads"
);

mod alarm;
mod backpressure;
pub mod book;
mod clock;
mod config;
mod context;
mod counters;
pub mod delay_queue;
#[allow(unsafe_code, reason = "the entry: the module lists its invariants")]
mod entry;
mod error;
pub mod future;
pub mod global;
mod handle;
pub mod infallible;
#[cfg(all(test, timer_loom, not(timer_shuttle)))]
mod loom_models;
mod resolution;
mod shard;
#[cfg(all(test, timer_loom, timer_shuttle))]
mod storms;
mod sync;
mod time;
mod timer;
pub mod wheel;
mod worker;

pub use config::{MissedRuns, WheelKind};
pub use counters::{LagSnapshot, TimerStats};
pub use entry::{Timeout, TimerTask};
pub use error::{BuildError, RejectReason, RejectedTimeout, StopError, WouldDeadlock};
#[doc(inline)]
pub use future::{Interval, Sleep, TimeoutError, TimeoutFuture};
pub use handle::{CancelOnDrop, Driver, ManualDriver, Timer, TimerBuilder, Turn, WeakTimer};
pub use infallible::InfallibleTimer;
pub use timer::{StopReport, Unprocessed};
#[doc(no_inline)]
pub use timer_executor as executor;

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
