//! The timer of [`timer_core`] for the timer interfaces of other crates.
//!
//! A server seldom calls a timer itself, but its HTTP library, its connection pool and its retry
//! layer do. If such a library lets its user choose the timer, this crate has a type for it. Each
//! module has a feature of the same name, and none is on by default.
//!
//! | feature | contents |
//! |---|---|
//! | `hyper` | [`HyperTimer`](hyper::HyperTimer) for the timeouts of hyper's connections and of hyper-util's pool, and [`ConnectionLimits`](hyper::ConnectionLimits) for all limits of a server's connection with one sleep |
//! | `tower` | [`TimeoutLayer`](tower::TimeoutLayer), [`ResponseBodyTimeoutLayer`](tower::ResponseBodyTimeoutLayer), [`ExponentialBackoffMaker`](tower::ExponentialBackoffMaker) |
//! | `quinn` | [`TimedRuntime`](quinn::TimedRuntime) for timers and clock of QUIC endpoints |
//! | `stream` | [`IntervalStream`](stream::IntervalStream), [`DelayQueueStream`](stream::DelayQueueStream), [`DelayMapStream`](stream::DelayMapStream), and [`TimedStreamExt`](stream::TimedStreamExt) for all streams |
//! | `tokio-time` | [`tokio::time`], with the names of tokio's module |
//! | `tokio` | [`paused`](tokio::paused) and [`runtime`](mod@tokio::runtime), which run a tokio program on virtual time in tests |
//!
//! All adapters take a [`Timer`](timer_core::Timer). With a manual timer they run on virtual time.
//!
//! The chapter `from_tokio` tells what to change in a program that uses `tokio::time`. The chapter
//! `in_your_stack` shows the code for axum, reqwest, tonic and others.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc = include_str!("from_tokio.md")]
pub mod from_tokio {}
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(all(feature = "hyper", feature = "quinn", feature = "tower"))]
#[doc = include_str!("in_your_stack.md")]
pub mod in_your_stack {}
#[cfg(feature = "quinn")]
pub mod quinn;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(feature = "tokio-time")]
pub mod tokio;
#[cfg(feature = "tower")]
pub mod tower;

/// Compiles the code of the README.
#[cfg(all(doctest, feature = "hyper"))]
#[doc = include_str!("../README.md")]
struct Readme;
