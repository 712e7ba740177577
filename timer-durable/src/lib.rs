//! Timeouts that survive a restart.
//!
//! A timer in memory loses its timeouts when the process ends. The timeouts of a [`DurableTimer`]
//! are in a store when the call of [`DurableTimer::new_timeout`] answers, and half of them begin
//! about a millisecond after their due time. The chapter [promises](book::promises) describes the
//! slower ones. Typical uses are closing unpaid orders, delayed messages, leases, retries and
//! reminders.
//!
//! ```
//! use std::time::Duration;
//! use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
//!
//! const CLOSE: Topic<String> = Topic::new("order.close");
//!
//! let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| {
//!     println!("closing order {}", due.payload());
//!     Ok(())
//! });
//! // `builder.open(SqliteStore::open("timeouts.db")?).wait()?` in a program, virtual time in a test.
//! let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
//! timer.new_timeout(CLOSE, Duration::from_secs(1800), "17").wait()?;
//! assert_eq!(driver.advance(Duration::from_secs(1800)), 1);
//! # Ok::<(), timer_durable::Error>(())
//! ```
//!
//! The store is a list of timeouts sorted by due time, and memory holds the head of the list. One
//! thread, the keeper, writes everything that arrives during a commit as the next transaction.
//! It sleeps until a call arrives or a timeout is due, and does not poll for due timeouts.
//!
//! Each call returns a [`Call`], which a thread waits for with `wait()` and a task with `.await`.
//! So [`open`](DurableTimerBuilder::open) and [`stop`](DurableTimer::stop) do not block a runtime
//! either. [`topic_async`](DurableTimerBuilder::topic_async) takes an async handler, which runs on
//! the runtime that was given to [`spawn`](DurableTimerBuilder::spawn) before.
//!
//! The [book] states the promises and their limits, and covers exactly once, sizing, upgrades,
//! clocks and moving from other systems.
//!
//! | feature | adds |
//! |---|---|
//! | `serde` | `Json`, a payload of any type that serde knows, and serde for ids, rows and figures |
//! | `uuid` | `TimeoutId` to and from `uuid::Uuid` |
//! | `opentelemetry` | spans of calls and attempts, over restarts and between machines, see [traces](book::traces) |
//! | `conformance` | the checks in `conformance` for stores of your own |
//!
//! No feature is on by default. The stores are crates of their own, and a program takes the one
//! that it uses:
//!
//! | crate | store |
//! |---|---|
//! | this one | [`MemoryStore`], for tests |
//! | `timer-durable-sqlite` | a file that one process owns |
//! | `timer-durable-postgres` | a PostgreSQL database that many machines share, and timeouts in your own transaction |
//!
//! The module [`store`] has the trait of stores with its rules, for a store of your own.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]

mod admin;
mod answer;
pub mod book;
mod builder;
mod call;
mod client;
#[cfg(feature = "conformance")]
pub mod conformance;
mod counting;
mod dead_letters;
mod done;
mod due;
mod engine;
mod error;
mod figures;
mod handler;
mod histogram;
mod id;
mod lateness;
mod manual;
mod many;
mod memory_store;
mod message;
mod payload;
mod permits;
mod reader_thread;
mod reading;
mod retry;
mod schedule;
#[cfg(feature = "serde")]
mod serde_form;
mod shutdown;
mod stats;
mod stop;
pub mod store;
mod time;
mod timer;
mod timetable;
mod topic;
mod topic_stats;
#[cfg(feature = "opentelemetry")]
mod traces;
#[cfg(not(feature = "opentelemetry"))]
#[path = "no_traces.rs"]
mod traces;
pub mod transaction;
mod user_transaction;
mod virtual_clock;
mod weak;
mod work;

pub use answer::{CancelAnswer, CancelCounts, RequeueAnswer, RequeueCounts, ResetAnswer, ScheduleAnswer};
pub use builder::DurableTimerBuilder;
pub use call::Call;
pub use done::Done;
pub use due::Due;
pub use error::Error;
pub use histogram::{BOUNDS, Histogram};
pub use id::{ParseIdError, TimeoutId};
pub use lateness::{DurableLateCause, DurableLateRun, DurableLateness};
pub use manual::ManualDurableDriver;
pub use memory_store::{Fault, FaultPoint, MemoryStore};
#[cfg(feature = "serde")]
pub use payload::Json;
pub use payload::{AsPayload, Payload, PayloadError};
pub use retry::{Later, Retry};
pub use schedule::{DueTime, NewTimeout, Schedule};
pub use shutdown::DurableStopReport;
pub use stats::Stats;
pub use store::dead_letter::{DeadFilter, DeadLetter};
pub use store::due::TopicDue;
pub use store::error::StoreError;
pub use store::figures::{Counts, Membership};
pub use store::pending::{Filter, Pending, PendingRow, TimeoutState};
pub use timer::DurableTimer;
pub use timetable::DurableTimetable;
pub use topic::Topic;
pub use topic_stats::TopicStats;
pub use transaction::if_pending::IfPending;
pub use virtual_clock::VirtualClock;
pub use weak::WeakDurableTimer;
pub use work::Transaction;

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
