//! The timer of hyper's servers and clients, and of hyper-util's connection pool.
//!
//! Without a timer hyper has no timeouts, and a client that sends nothing keeps its connection.
//! Give a [`HyperTimer`] to the builder of the server or of the client.
//!
//! ```no_run
//! use hyper::server::conn::http1;
//! use std::time::Duration;
//! use timer_adapters::hyper::HyperTimer;
//!
//! let mut server = http1::Builder::new();
//! server.timer(HyperTimer::global()).header_read_timeout(Duration::from_secs(10));
//! ```
//!
//! [`ConnectionLimits`] gives an HTTP/1 server more limits at a lower cost, because all limits of a
//! connection share one sleep.

mod limits;
mod parts;
mod timer;

pub use limits::{ConnectionError, ConnectionLimits, LimitedConnection};
pub use parts::Limit;
pub use parts::{LimitedBody, LimitedFuture, LimitedIo, LimitedService};
pub use timer::HyperTimer;

use timer_core::{Sleep, Timer};
