//! Small real programs, each one use of the timer.
//!
//! | program | shows |
//! |---|---|
//! | `quickstart` | the first program of the README: one timeout is cancelled, one is moved and fires |
//! | `rpc_timeouts` | requests on tokio, a hundred thousand in flight, each with a deadline |
//! | `key_store` | a server written for `tokio::time`, with its `use` line changed |
//! | `event_loop` | an echo server's `mio` loop that drives the timer itself, without a thread |
//! | `heartbeat` | connections that send heartbeats and close after three silent intervals |
//! | `lock_watchdog` | a lock in Redis, its lease renewed until the work is done |
//! | `order_close` | orders that close unless they are paid, with durable timeouts that survive a crash |
//! | `payments` | payments of orders, tried again with a backoff, also on virtual time |
//! | `timeouts` | durable timeouts by lines of text, for tests and for other languages |
//! | `dead_letters` | lists, counts, requeues and purges the dead letters of a store |
//! | `migrating_from_netty` | Netty's calls and ours; a task that blocks, on two executors |
//! | `metrics_export` | an executor chosen, and the timer's metrics exported |
//! | `sessions` | a web log replayed as connections with an idle timeout |
//!
//! The programs are in `src/bin`. This library contains the parts that they share ([`cli`],
//! [`durable`], [`ledger`]) and the parts of `sessions`, so that each can be tested alone. It is
//! not meant for other crates and may change at any time.

#![forbid(unsafe_code)]

pub mod cli;
pub mod durable;
pub mod ledger;
pub mod sessions;

/// Compiles and runs the programs in the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
