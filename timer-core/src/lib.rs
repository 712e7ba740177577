//! Millions of timeouts at O(1): the timer of this workspace.
//!
//! A server holds a timeout for every request, connection, heartbeat and lease, and cancels or moves nearly all of them
//! before they run. [`Timer`] makes schedule, cancel and reset cost O(1), lets no caller wait for another, and accounts for
//! every timeout exactly: it runs, is cancelled, or is handed back by [`Timer::stop`].
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
//! The way of the data: [`Timer::new_timeout`] turns a delay into a deadline and a tick (rounded up) and links an entry into
//! the wheel of the calling thread's shard; the worker sleeps until the first tick with something in it, takes out what is
//! due, wins each timeout's state against `cancel` and `reset`, and hands it to the [executor](timer_executor). Where tasks
//! run is chosen at construction ([`TimerBuilder::executor`]). Time can also be driven by hand ([`ManualDriver`], for tests
//! on virtual time) or by somebody's own event loop ([`Driver`]): all three are the same engine.
//!
//! The wheels themselves are pure data structures and can be embedded alone: see [`wheel`].
//!
//! *What is promised*: never early, whatever the tick; what is due already runs now; exactly one end; exact counts at quiet;
//! `cancel` frees the task before it returns; user code never runs under a lock; nothing due, nothing woken; any delay is
//! fine. A panic of a task is caught, counted and traced (with `panic = "unwind"`).

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod alarm;
mod builder;
mod clock;
mod context;
mod driver;
mod engine;
mod entry;
mod entry_wheel;
mod error;
mod inbox;
mod job;
mod lag;
#[cfg(all(test, timer_loom))]
mod loom_models;
mod manual;
mod shard;
mod slow;
mod state;
mod stats;
mod sync;
mod tally;
mod time;
mod timeout;
mod timer;
mod turn;
mod unprocessed;
mod weak;
pub mod wheel;
mod worker;

pub use builder::TimerBuilder;
pub use driver::{Driver, Turn};
pub use entry_wheel::WheelKind;
pub use error::{BuildError, RejectReason, RejectedTimeout, StopError, Stopped};
pub use job::{MissedRuns, TimerTask};
pub use lag::LagSnapshot;
pub use manual::ManualDriver;
pub use stats::TimerStats;
pub use timeout::Timeout;
pub use timer::Timer;
pub use unprocessed::Unprocessed;
pub use weak::WeakTimer;
