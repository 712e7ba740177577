//! The promises of durable timeouts on one machine, on virtual time and with a real file.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod answers;
mod auto_traits;
mod book;
mod builder;
mod dividing;
mod engine;
mod events;
mod executors;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod folder;
mod follow_ups;
#[cfg(all(feature = "sqlite", unix))]
mod full_disk;
#[cfg(feature = "sqlite")]
mod handlers;
mod isolation;
mod keeper;
mod late_causes;
mod lateness;
#[cfg(feature = "sqlite")]
mod ledger;
#[cfg(feature = "sqlite")]
mod locked;
mod many;
#[cfg(feature = "sqlite")]
mod names;
mod one_clock;
mod outage;
mod overdue;
#[cfg(all(feature = "sqlite", unix))]
mod owner;
mod points;
#[cfg(feature = "sqlite")]
mod processes;
mod queue;
mod random;
#[cfg(all(feature = "sqlite", unix))]
mod reading;
#[cfg(feature = "sqlite")]
mod schema;
mod scripted;
mod stops;
#[cfg(feature = "sqlite")]
mod tally;
mod terms;
mod time_limits;
mod timetable;
#[cfg(feature = "sqlite")]
mod tombstones;
mod topic_stats;
#[cfg(feature = "sqlite")]
mod transactions;
#[cfg(feature = "sqlite")]
mod unreadable;
mod user_code;
mod virtual_time;

#[cfg(feature = "sqlite")]
#[path = "../support/explained.rs"]
mod explained;
#[allow(dead_code, reason = "the tests of timer-core use the rest of it")]
#[path = "../../../timer-core/tests/support/log.rs"]
mod log;
#[cfg(feature = "sqlite")]
#[path = "../support/never_early.rs"]
mod never_early;

/// Returns the topic of most tests, whose payload has the type that the handler takes.
const fn t<P>() -> timer_durable::Topic<P> {
    timer_durable::Topic::new("t")
}
