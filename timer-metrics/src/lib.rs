//! Exporters for the counts and lags of timers.
//!
//! [`TimerMetrics`] is the set of timers to export, each under its own label. It reads
//! [`Timer::stats`] when a scrape or a call asks for it. It has neither a thread nor a timeout
//! and costs nothing on the timer's hot paths. It keeps no timer alive. The series of a timer end
//! when its last handle is dropped.
//!
//! | feature | adds | dependency |
//! |---|---|---|
//! | `prometheus` (default) | [`TimerMetrics::register`] to your registry | `prometheus-client` |
//! | `metrics` | [`Publisher`] to the installed recorder | `metrics` |
//! | `durable` | `DurableMetrics` for the timers of `timer-durable` | `timer-durable` |
//! | `protobuf` | native histograms in a registry that is encoded as protobuf | `prost` |
//!
//! The crate `timer-live` serves a registry and a live page of the timers over HTTP.
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
//! Every series has the timer's name as the label `timer`. Prometheus and the facade
//! `metrics` use the same names.
//!
//! | name | type | meaning |
//! |---|---|---|
//! | `timer_pending_timeouts` | gauge | timeouts that were accepted and have not ended |
//! | `timer_tasks_queued` | gauge | pending tasks that wait for a thread of the executor |
//! | `timer_tasks_running` | gauge | tasks that are running; all tasks on the worker count as one |
//! | `timer_timeouts_scheduled_total` | counter | accepted timeouts; a periodic task counts once |
//! | `timer_timeouts_expired_total` | counter | timeouts that ended by running |
//! | `timer_timeouts_cancelled_total` | counter | cancelled, or returned by `stop` |
//! | `timer_timeouts_rejected_total` | counter | calls that the timer refused |
//! | `timer_task_panics_total` | counter | panics that the timer caught |
//! | `timer_executor_rejections_total` | counter | tasks that ran elsewhere, because the executor refused or dropped a task |
//! | `timer_turns_total` | counter | turns of the worker |
//! | `timer_runs_total` | counter | tasks that have started; a periodic task counts with every run |
//! | `timer_entries_cascaded_total` | counter | entries moved to a finer level of the wheel |
//! | `timer_inbox_handovers_total` | counter | requests left at a locked shard |
//! | `timer_shards` | gauge | number of shards |
//! | `timer_longest_task_seconds` | gauge | longest time of the worker for a batch of up to 64 tasks and wakers, within the last one to two minutes |
//! | `timer_max_pending_timeouts` | gauge | the bound, for timers that have one |
//! | `timer_longest_delay_seconds` | gauge | see [`Watch::longest_delay`] |
//! | `timer_due_within_seconds` | gauge | timeouts due within `le` seconds (see [`DUE_BOUNDS`]), and all pending ones |
//! | `timer_expected_lag_seconds` | gauge | see [`Timetable::expected_lag`] |
//! | `timer_lateness_seconds_total` | counter | time by which runs were late, by the label `cause` (see [`LateCause`]) |
//! | `timer_late_runs_seconds` | histogram | parts of at least 1 ms of the lateness of late runs, by the label `cause`; not in the facade |
//! | `timer_tick_lag_seconds` | histogram | time from a tick to the turn that handled it |
//! | `timer_timeout_lag_seconds` | histogram | time from a deadline to the hand-over of its task |
//! | `timer_start_lag_seconds` | histogram | time from a deadline to the start of its task |
//!
//! The timeout lag and the start lag are equal where tasks run on the worker. With an executor that
//! has its own threads, the difference is the wait in the executor's queue. If it grows,
//! `timer_tasks_queued` grows as well, and the executor needs more threads or less work.
//!
//! The lateness of all runs has one part for each cause, and the parts add up to the sum of the
//! start lag. Its rate is the number of runs that are late at a time for that cause. The page of
//! `timer-live` lists the worst ten tasks of the last minute, with the split of their worst runs.
//!
//! `timer_due_within_seconds` is what is to come, read from the timer's wheels ([`Timetable`]). Its
//! label `le` is cumulative as in a histogram, so `histogram_quantile` works with it. But it is a
//! gauge, since each number may fall, and the client has no gauge histograms. So `promtool check
//! metrics` says that the label is for histograms. The numbers of a timer with a million timeouts
//! may be a minute old, see [`TimerMetrics::snapshots`].
//!
//! Tasks that the executor refused ran on the worker, unless the timer was stopped.
//!
//! In a quiescent timer, scheduled = pending + expired + cancelled.
//!
//! # Native histograms
//!
//! With the feature `protobuf`, the lags of timers and the commit times of durable timers also have
//! native buckets in Prometheus' protobuf format. `timer-live` answers in that format if the
//! scraper asks for it, and your own server encodes a registry with
//! `prometheus_client::encoding::prometheus_protobuf`. Each native bound is 9 % above the one
//! before, so a quantile is known to 5 %. A classic bound is 2 to 3 times the one before. The text
//! formats stay as they are.
//!
//! A Prometheus asks for protobuf if native histograms are enabled, and then leaves the classic
//! buckets out, which the dashboard and the alerts below use. Set
//! `always_scrape_classic_histograms: true` for the job to keep both (`scrape_classic_histograms`
//! before version 3, from 2.45 on).
//!
//! # Dashboard and alerts
//!
//! The crate's folder contains a Grafana dashboard (`grafana/dashboard.json`) and alert rules for
//! Prometheus (`prometheus/alerts.yml`) with tests (`prometheus/alerts_test.yml`, for `promtool
//! test rules`).
//!
//! | alert | fires when |
//! |---|---|
//! | `TimerLate` | 1 in 100 timeouts is handed over more than a second late |
//! | `TimerTasksStartLate` | 1 in 100 tasks starts more than a second late |
//! | `TimerNearlyFull` | a timer with a bound is at 90 % of it |
//! | `TimerRejecting` | the timer refused calls in the last 5 minutes |
//! | `TimerExecutorRejecting` | the executor refused tasks in the last 5 minutes |
//! | `TimerTaskPanics` | the timer caught panics in the last 5 minutes |
//! | `TimerWorkerStuck` | a timeout is overdue and the worker took no turn for 10 minutes |
//!
//! All alerts but the last work for every watched timer. The last alert also needs the longest
//! delay in use, which the timer does not know. State it with [`Watch::longest_delay`].
//!
//! The feature `durable` adds `DurableMetrics` for the timers of `timer-durable`, with another
//! dashboard (`grafana/durable.json`) and other alerts (`prometheus/durable_alerts.yml`).
//!
//! Pushing to a gateway and a global registry are left to the application.
//!
//! [`Timer::stats`]: timer_core::Timer::stats
//! [`LateCause`]: timer_core::LateCause
//! [`Timetable`]: timer_core::Timetable
//! [`Timetable::expected_lag`]: timer_core::Timetable::expected_lag

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]
#![cfg_attr(not(all(feature = "prometheus", feature = "metrics")), allow(rustdoc::broken_intra_doc_links))]

mod buckets;
#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "metrics")]
mod facade;
mod kept;
#[cfg(feature = "protobuf")]
mod native;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(any(feature = "prometheus", feature = "metrics"))]
mod series;
mod snapshot;
mod timer_metrics;
#[cfg(any(feature = "prometheus", feature = "metrics"))]
mod timer_series;
mod watch;
mod watched;

/// The crate of the registries to which [`TimerMetrics::register`] adds timers.
#[cfg(feature = "prometheus")]
#[doc(no_inline)]
pub use prometheus_client;

pub use buckets::{DUE_BOUNDS, LAG_BUCKETS};
#[cfg(feature = "durable")]
pub use durable::{DurableMetrics, DurableSnapshot};
#[cfg(feature = "metrics")]
pub use facade::Publisher;
pub use snapshot::TimerSnapshot;
pub use timer_metrics::TimerMetrics;
pub use watch::Watch;

/// Compiles and runs the examples in the README.
#[cfg(all(doctest, feature = "prometheus"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
