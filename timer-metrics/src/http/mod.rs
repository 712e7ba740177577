//! A registry under `/metrics`, for a process that has no HTTP server of its own.
//!
//! One thread accepts. Each connection gets a thread for its one request, for seconds at most, and is closed after the
//! reply, so that no client waits for another one and nothing is kept between two scrapes. Every wait has a deadline, every
//! buffer a bound ([`limits`]), and a client that is one too many takes the place of the one that has been here longest.
//!
//! Requests are parsed by `httparse`. The rest is here because small server crates leave out what an open port needs most:
//! a deadline for each client, a bound on the length of a line, and an end on which nothing is left behind.
//!
//! *What is absent*: TLS, authentication, compression, keep-alive. A process that faces more than its own machine or its
//! pod has a server for those, and mounts a registry there.

mod accept;
mod address;
mod deadline;
mod exchange;
mod limits;
mod listener;
mod plain_text;
mod request;
mod stage;

pub use address::{ListenAddr, ParseListenAddrError};

use crate::timer_metrics::TimerMetrics;
use limits::Limits;
use listener::Listener;
use prometheus_client::registry::Registry;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves a registry under `/metrics`, until it is dropped.
///
/// The reply is OpenMetrics text 1.0.0, or Prometheus text 0.0.4, by the request's `Accept`; text 0.0.4 if that asks for
/// neither. `GET` and `HEAD` only: other methods get 405, other paths 404, nonsense 400; `OPTIONS *` is answered as
/// `OPTIONS /metrics`. A collector that fails or panics makes the reply 500.
///
/// A slow client delays no other: each has its own thread, 5 s for its request and 10 s for its reply. Of more than 32 clients
/// at once the one that has been connected longest is cut off. Only slow collectors can make good clients wait.
///
/// Dropping the server closes all connections and waits for its threads, so for a collector that is being asked just now,
/// too. Then the port is free.
///
/// # Examples
///
/// ```
/// use prometheus_client::registry::Registry;
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use timer_core::Timer;
/// use timer_metrics::{MetricsServer, TimerMetrics};
///
/// let timer = Timer::new();
/// let mut registry = Registry::default();
/// TimerMetrics::from_iter([&timer]).register(&mut registry);
/// let server = MetricsServer::serve(0, registry)?;
///
/// let mut scrape = TcpStream::connect(server.local_addr())?;
/// scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
/// let mut reply = String::new();
/// scrape.read_to_string(&mut reply)?;
/// assert!(reply.contains("timer_pending_timeouts{timer=\"timer\"} 0\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the server stops it"]
pub struct MetricsServer {
    listener: Listener,
}

impl MetricsServer {
    /// Serves `registry` on `addr`: a port alone means the loopback address, so that other machines see it only if you say
    /// so ([`ListenAddr`]). Port 0 takes a free one ([`local_addr`](Self::local_addr) has it).
    ///
    /// The registry is yours, with whatever else is in it: a [`Registry`], or an `Arc` of one that is used elsewhere too.
    ///
    /// # Errors
    ///
    /// What the system says when the address is taken or not allowed, with the address; or when it gives no thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # use prometheus_client::registry::Registry;
    /// # use timer_metrics::MetricsServer;
    /// let server = MetricsServer::serve(0, Registry::default())?;
    /// assert!(server.local_addr().ip().is_loopback());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve(addr: impl Into<ListenAddr>, registry: impl Into<Arc<Registry>>) -> io::Result<Self> {
        Ok(Self { listener: Listener::start(addr.into(), registry.into(), Limits::default())? })
    }

    /// Where it listens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use prometheus_client::registry::Registry;
    /// # use timer_metrics::MetricsServer;
    /// let server = MetricsServer::serve(0, Registry::default())?;
    /// println!("http://{}/metrics", server.local_addr());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.addr()
    }
}

impl fmt::Debug for MetricsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsServer").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}

impl TimerMetrics {
    /// Serves the timers of this set, and nothing else, under `/metrics`. As [`MetricsServer::serve`] with a registry that
    /// has only them.
    ///
    /// # Errors
    ///
    /// As for [`MetricsServer::serve`].
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_metrics::TimerMetrics;
    ///
    /// let timer = timer_core::Timer::new();
    /// let server = TimerMetrics::from_iter([&timer]).serve(0)?;
    /// println!("http://{}/metrics", server.local_addr());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve(&self, addr: impl Into<ListenAddr>) -> io::Result<MetricsServer> {
        let mut registry = Registry::default();
        self.register(&mut registry);
        MetricsServer::serve(addr, registry)
    }
}
