//! A small HTTP server for a process without one. It serves a registry under
//! `/metrics`, and a live page.
//!
//! One thread accepts connections. Each connection gets a thread for its one request and is closed
//! after the reply, so no client waits for another one and nothing is kept between two requests.
//! Every wait for a client has a deadline and every buffer a bound ([`limits`]).
//!
//! `httparse` parses the requests. The rest is implemented here, because small server crates lack
//! the parts that an open port needs most. These are a deadline for each client, a bound on the
//! length of a line, and a stop that leaves nothing behind.
//!
//! TLS, authentication, compression and keep-alive are absent. A process that is reachable from
//! outside its machine or pod should mount the registry in a server that has them.

mod accept;
#[cfg(feature = "durable")]
mod actions;
mod address;
mod deadline;
mod exchange;
mod hosts;
mod json;
mod limits;
mod listener;
mod live;
mod options;
mod plain_text;
mod reply;
mod request;
mod site;
mod stage;

pub use address::{ListenAddr, ParseListenAddrError};
pub use options::ServeOptions;
pub use reply::Reply;
pub use request::Request;

use crate::timer_metrics::TimerMetrics;
use accept::Format;
use limits::Limits;
use listener::Listener;
use prometheus_client::registry::Registry;
use site::Site;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// A server for a registry under `/metrics`, and for the live page of timers under `/`. Dropping it
/// stops it.
///
/// | path | content |
/// |---|---|
/// | `/metrics` | OpenMetrics text 1.0.0 or Prometheus text 0.0.4, by the request's `Accept`, and with the feature `protobuf` also protobuf |
/// | `/` | a live page with counts, rates and lags, in one document without parts from elsewhere |
/// | `/stats.json` | the figures of the page |
/// | `/healthz` | `ok`, and the ages of the leases of durable timers; status 503 if one is above 60 s |
///
/// Only a server that [`TimerMetrics`] started has the last three, because a registry does not show
/// which of its metrics belong to timers. The page asks for new figures every second while it is
/// visible. Rates are changes since earlier requests, so nothing is measured while no page is open.
/// The counts of the first 500 timers are kept for a minute, about 1 KB each, and other timers have
/// no rates.
/// With the feature `durable`, `ServeOptions::durable` adds durable timers to the page, and
/// `ServeOptions::actions` lets its users act on them.
///
/// The server answers `GET` and `HEAD`. Other methods get status 405, other paths 404, malformed
/// requests 400. `OPTIONS *` is answered like `OPTIONS /metrics`. The status is 500 if a collector
/// fails or panics. On a loopback address, a request whose `Host` is neither `localhost` nor an
/// address gets status 403, unless [`ServeOptions::host`] names it.
///
/// A slow client does not delay others, because each has its own thread, 5 s for its request and 10
/// s for its reply. If there are more than 32 clients, the server cuts off the one that has been
/// connected longest and is not in the collectors. If all are there, it refuses the new client.
/// Only slow collectors can delay well-behaved clients.
///
/// Dropping the server closes all connections and joins its threads, so it waits for a collector
/// that is running, unless that collector drops it. Afterwards the port is free, even if the
/// process has no file descriptor left. Some systems other than Linux cannot shut down a listening
/// socket. There the port is freed only if a descriptor is left.
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
    /// Serves `registry` on `addr`. A port alone means the loopback address, so other machines have
    /// no access by default ([`ListenAddr`]). Port 0 takes a free port, which
    /// [`local_addr`](Self::local_addr) returns.
    ///
    /// The registry may contain other metrics. Pass a [`Registry`], or an `Arc` of one that is also
    /// used elsewhere.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, with the address, if the address is taken or not allowed,
    /// and an error if the system gives no thread.
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
        Self::start(addr.into(), Site { registry: registry.into(), live: None, names: Some(Vec::new()) })
    }

    fn start(addr: ListenAddr, mut site: Site) -> io::Result<Self> {
        if !addr.0.ip().to_canonical().is_loopback() {
            site.names = None;
        }
        Ok(Self { listener: Listener::start(addr, Arc::new(site), Limits::default())? })
    }

    /// Returns the address on which the server listens.
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

/// The documents of a [`MetricsServer`] without a socket, for an HTTP server that exists already
/// and has its own login. Clones share the history behind the rates of the live page.
///
/// Mount the site at a path that ends in `/`, because the live page asks for `stats.json` relative
/// to its own path. The server is responsible for the names under which it answers, so
/// [`ServeOptions::host`] only tells under which names actions are allowed.
///
/// # Examples
///
/// In axum, with `nest_service("/timers", ..)` or a fallback below it:
///
/// ```
/// use timer_metrics::{MetricsSite, Request, ServeOptions, TimerMetrics};
///
/// let timer = timer_core::Timer::new();
/// let site = TimerMetrics::from_iter([&timer]).site(ServeOptions::new())?;
/// let handle = move |method: &str, target: &str, headers: &[(&str, &str)]| {
///     let request = Request::new(method, target);
///     let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
///     let reply = site.respond_to(&request);
///     let headers: Vec<(&str, &str)> = reply.headers().collect();
///     (reply.status(), headers, reply.into_bytes())
/// };
/// let (status, _, body) = handle("GET", "/metrics", &[("Host", "example.com")]);
/// assert!(status == 200 && body.starts_with(b"# HELP timer_pending_timeouts"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MetricsSite {
    site: Arc<Site>,
}

impl MetricsSite {
    /// Returns the reply to a request. The paths and the statuses are those of [`MetricsServer`].
    ///
    /// The call takes as long as the collectors, some microseconds per timer, and never blocks a
    /// worker. A panic of a collector is contained. Only an action on a durable timer and the list
    /// of its timeouts wait, for its store.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{Request, ServeOptions, TimerMetrics};
    /// let site = TimerMetrics::new().site(ServeOptions::new())?;
    /// assert_eq!(site.respond_to(&Request::new("GET", "/healthz")).into_bytes(), &b"ok\n"[..]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn respond_to(&self, request: &Request) -> Reply {
        self.site.age();
        self.site.answer(request)
    }

    /// Returns the reply to a request of which only `Accept` is known, or empty. `path` has no
    /// query. The same as [`respond_to`](Self::respond_to), except that every body is text and that
    /// no action is possible.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let site = TimerMetrics::new().site(ServeOptions::new())?;
    /// assert_eq!(site.respond("GET", "/healthz", "").into_body(), "ok\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn respond(&self, method: &str, path: &str, accept: &str) -> Reply {
        self.site.age();
        self.site.respond(method, path, Format::wanted_text(accept))
    }
}

impl TimerMetrics {
    /// Returns the documents of a server for the timers of this set, without a socket.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the prefix or the name of a label is not allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let site = TimerMetrics::new().site(ServeOptions::new().prefix("shop"))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn site(&self, options: ServeOptions) -> io::Result<MetricsSite> {
        Ok(MetricsSite { site: Arc::new(options.into_site(self)?) })
    }

    /// Serves the timers of this set: metrics under `/metrics` and a live page under `/`. See
    /// [`MetricsServer`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`MetricsServer::serve`].
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_metrics::TimerMetrics;
    ///
    /// let timer = timer_core::Timer::new();
    /// let server = TimerMetrics::from_iter([&timer]).serve(0)?;
    /// println!("open http://{}", server.local_addr());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve(&self, addr: impl Into<ListenAddr>) -> io::Result<MetricsServer> {
        self.serve_with(addr, ServeOptions::new())
    }

    /// Serves the timers of this set with further settings. See [`serve`](Self::serve).
    ///
    /// # Errors
    ///
    /// In addition to the errors of [`MetricsServer::serve`], returns `InvalidInput` if the prefix
    /// or the name of a label is not allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_metrics::{ServeOptions, TimerMetrics};
    ///
    /// let timer = timer_core::Timer::new();
    /// let options = ServeOptions::new().label("region", "eu-west");
    /// let server = TimerMetrics::from_iter([&timer]).serve_with(0, options)?;
    /// println!("open http://{}", server.local_addr());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve_with(&self, addr: impl Into<ListenAddr>, options: ServeOptions) -> io::Result<MetricsServer> {
        MetricsServer::start(addr.into(), options.into_site(self)?)
    }
}
