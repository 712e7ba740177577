//! What a timer does, for the systems that watch it: Prometheus and OpenMetrics, the facade `metrics`, Grafana.
//!
//! [`TimerMetrics`] is a set of timers to export, each under a label of its own. It reads [`Timer::stats`] when it is asked, by a
//! scrape or a call, and at no other time: no thread of its own, no timeout, nothing on the timer's hot paths. It keeps no timer
//! alive: a timer ends with its last handle, and its series end with it.
//!
//! | feature | brings | needs |
//! |---|---|---|
//! | `prometheus` (default) | [`TimerMetrics::register`]: all timers in your own registry | `prometheus-client` |
//! | `http` | [`MetricsServer`]: a registry under `/metrics`, without an async runtime | `httparse` |
//! | `metrics` | [`Publisher`]: all timers to the recorder that is installed | `metrics` |
//!
#![cfg_attr(feature = "prometheus", doc = "```")]
#![cfg_attr(not(feature = "prometheus"), doc = "```ignore")]
//! use prometheus_client::registry::Registry;
//! use timer_core::Timer;
//! use timer_metrics::TimerMetrics;
//!
//! let timer = Timer::builder().name("rpc").build()?;
//! let mut registry = Registry::default();
//! TimerMetrics::from_iter([&timer]).register(&mut registry);
//!
//! let mut text = String::new();
//! prometheus_client::encoding::text::encode(&mut text, &registry)?;
//! assert!(text.contains("timer_pending_timeouts{timer=\"rpc\"} 0\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Series
//!
//! All have the label `timer`, the timer's name. The names are the same in Prometheus and in the facade.
//!
//! | name | type | meaning |
//! |---|---|---|
//! | `timer_pending_timeouts` | gauge | accepted and not ended |
//! | `timer_tasks_queued` | gauge | handed over and not started: they wait for a thread of the executor, and are pending |
//! | `timer_tasks_running` | gauge | started and not returned; those that the worker runs itself count as one |
//! | `timer_timeouts_scheduled_total` | counter | accepted; a periodic task counts once |
//! | `timer_timeouts_expired_total` | counter | ended by running |
//! | `timer_timeouts_cancelled_total` | counter | ended by `cancel`, or handed back by `stop` |
//! | `timer_timeouts_rejected_total` | counter | calls that were refused |
//! | `timer_task_panics_total` | counter | panics that were caught |
//! | `timer_executor_rejections_total` | counter | tasks that ran on the worker because the executor did not take them |
//! | `timer_turns_total` | counter | how often the worker looked for due timeouts |
//! | `timer_runs_total` | counter | tasks handed over to run; a periodic task counts with every run, one that is moved while it is queued may count again |
//! | `timer_entries_cascaded_total` | counter | entries moved from a coarse level of the wheel to a finer one |
//! | `timer_inbox_handovers_total` | counter | calls that found the lock of their shard taken and left a request |
//! | `timer_shards` | gauge | among how many shards callers are spread |
//! | `timer_longest_task_seconds` | gauge | the longest that one task can have held the worker: of a batch of up to 64, all of it |
//! | `timer_max_pending_timeouts` | gauge | how many may be pending at once; only for timers with a bound |
//! | `timer_longest_delay_seconds` | gauge | the longest delay in use, where [`Watch::longest_delay`] told it |
//! | `timer_tick_lag_seconds` | histogram | how late a turn began after the tick that it was to handle |
//! | `timer_timeout_lag_seconds` | histogram | how late a task was handed over after its deadline |
//! | `timer_start_lag_seconds` | histogram | how late a task started after its deadline |
//!
//! The two last ones are the same where tasks run on the worker. With an executor that has threads of its own, what the start
//! lag has more is the wait in the executor's queue: then `timer_tasks_queued` grows, too, and more threads or less work help.
//!
//! At quiet, scheduled = pending + expired + cancelled.
//!
//! # Dashboard and alerts
//!
//! Ready for use, in the crate's folder: a Grafana dashboard (`grafana/dashboard.json`), and alert rules for Prometheus
//! (`prometheus/alerts.yml`) with their tests (`prometheus/alerts_test.yml`, for `promtool test rules`).
//!
//! | alert | fires when |
//! |---|---|
//! | `TimerLate` | 1 in 100 timeouts is handed over more than a second late |
//! | `TimerTasksStartLate` | 1 in 100 tasks starts more than a second late |
//! | `TimerNearlyFull` | 90 % of the timeouts that may be pending are; only for timers with a bound |
//! | `TimerRejecting` | calls were refused in the last 5 minutes |
//! | `TimerExecutorRejecting` | the executor did not take tasks in the last 5 minutes |
//! | `TimerTaskPanics` | tasks panicked in the last 5 minutes |
//! | `TimerWorkerStuck` | a timeout is overdue and the worker has not looked for 10 minutes |
//!
//! All of them work for a timer that is watched, but the last: it needs the longest delay in use, which a timer cannot tell and
//! [`Watch::longest_delay`] can. A bound need not be told.
//!
//! *What is absent*: pushing to a gateway, and a global registry. Both are the application's choice.
//!
//! [`Timer::stats`]: timer_core::Timer::stats

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]
#![cfg_attr(
    not(all(feature = "prometheus", feature = "http", feature = "metrics")),
    allow(rustdoc::broken_intra_doc_links)
)]

mod buckets;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(any(feature = "prometheus", feature = "metrics"))]
mod series;
mod snapshot;
mod timer_metrics;
mod watch;

pub use buckets::LAG_BUCKETS;
#[cfg(feature = "metrics")]
pub use facade::Publisher;
#[cfg(feature = "http")]
pub use http::{ListenAddr, MetricsServer, ParseListenAddrError};
pub use snapshot::TimerSnapshot;
pub use timer_metrics::TimerMetrics;
pub use watch::Watch;

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
