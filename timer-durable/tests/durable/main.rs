//! The promises of durable timeouts with stores in memory, on virtual time and on the real clock.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod answers;
mod auto_traits;
mod builder;
mod cluster_rate;
mod dividing;
mod engine;
mod events;
mod executors;
mod follow_ups;
mod handlers;
mod isolation;
mod keeper;
mod late_causes;
mod lateness;
mod many;
mod never_early;
mod one_clock;
mod outage;
mod overdue;
mod points;
mod queue;
mod queued;
mod random;
mod reading;
mod scripted;
mod stops;
mod terms;
mod time_limits;
mod timetable;
mod topic_stats;
mod transactions;
mod user_code;
mod virtual_time;

#[allow(dead_code, reason = "the tests of timer-core use the rest of it")]
#[path = "../../../timer-core/tests/support/log.rs"]
mod log;

use timer_durable_tests::t;
