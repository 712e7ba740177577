//! A live page and the metrics of timers over HTTP, for a process without an HTTP server.
//!
//! A [`LivePage`] shows the timers of a [`TimerMetrics`](timer_metrics::TimerMetrics): their counts
//! and lags, the timeouts to come, and the tasks of their worst runs. [`LivePage::serve`] starts a
//! small [`Server`], which also has the metrics under `/metrics`. [`LivePage::site`] returns the
//! same documents as a [`Site`] without a socket.
//!
//! ```
//! use timer_core::Timer;
//! use timer_live::LivePage;
//! use timer_metrics::TimerMetrics;
//!
//! let timer = Timer::builder().name("rpc").build()?;
//! let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0)?; // or a fixed port
//! println!("live page http://{0}/, metrics http://{0}/metrics", server.local_addr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
#![doc = concat!("![The live page of a timer](data:image/png;base64,", include_str!("live_page.base64"), ")")]
//!
//! TLS, authentication, compression and keep-alive are absent. A process that is reachable from
//! outside its machine or pod should mount the site in a server that has them.
//!
//! | feature | adds |
//! |---|---|
//! | `durable` | the timers of `timer-durable` by `LivePage::durable`: the store, pending timeouts, those to come, attempts in flight, lag and commit times, dead letters, store errors, and for a shared store the node with its shards and the age of its lease. `LivePage::actions` lets the users of the page act on them |
//! | `protobuf` | native histograms under `/metrics`, if the scraper asks for protobuf |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]

mod http;
mod live_page;
mod page;
mod server;
mod site;

pub use http::{Reply, Request};
pub use live_page::LivePage;
pub use server::{ListenAddr, ParseListenAddrError, Server};
pub use site::Site;

/// Compiles the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
