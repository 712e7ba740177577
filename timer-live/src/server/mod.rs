//! The server: a listening socket with its threads.
//!
//! One thread accepts connections. Each connection gets a thread for its one request and is closed
//! after the reply, so no client waits for another one and nothing is kept between two requests.
//! Every wait for a client has a deadline and every buffer a bound ([`limits`]).
//!
//! `httparse` parses the requests. The rest is implemented here, because small server crates lack
//! the parts that an open port needs most. These are a deadline for each client, a bound on the
//! length of a line, and a stop that leaves nothing behind.
//!
//! # Stopping
//!
//! 1. Set the flag `stopped`.
//! 2. Shut the listening socket down. On Linux this ends `accept` at once. It needs no file
//!    descriptor, so it also works when the process has none left.
//! 3. On systems where a listening socket cannot be shut down, connect to it instead, which ends
//!    `accept`.
//! 4. The accepting thread sees the flag, shuts the sockets of all clients down and joins their
//!    threads.
//!
//! The thread of a client may drop the server, because a scrape may drop the last handle of a timer
//! with its tasks. It does not wait then, since step 4 waits for it.

mod address;
mod clients;
mod deadline;
mod exchange;
mod limits;
mod stage;

pub use address::{ListenAddr, ParseListenAddrError};

use crate::site::Site;
use clients::{Clients, NAME, accept, is_serving};
use limits::Limits;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server of a [`LivePage`](crate::LivePage). Dropping it stops it.
///
/// | path | content |
/// |---|---|
/// | `/metrics` | OpenMetrics text 1.0.0 or Prometheus text 0.0.4, by the request's `Accept`, and with the feature `protobuf` also protobuf |
/// | `/` | a live page with counts, rates and lags, in one document without parts from elsewhere |
/// | `/stats.json` | the figures of the page |
/// | `/healthz` | `ok`, and the ages of the leases of durable timers; status 503 if one is above 60 s |
///
/// The page asks for new figures every second while it is visible. Rates are changes since earlier
/// requests, so nothing is measured while no page is open. The counts of the first 500 timers are
/// kept for a minute, about 1 KB each, and other timers have no rates.
///
/// The server answers `GET` and `HEAD`. Other methods get status 405, other paths 404, malformed
/// requests 400. `OPTIONS *` is answered like `OPTIONS /metrics`. The status is 500 if a collector
/// fails or panics. On a loopback address, a request whose `Host` is neither `localhost` nor an
/// address gets status 403, unless [`LivePage::host`](crate::LivePage::host) names it.
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
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use timer_core::Timer;
/// use timer_live::LivePage;
/// use timer_metrics::TimerMetrics;
///
/// let timer = Timer::new();
/// let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0)?;
///
/// let mut scrape = TcpStream::connect(server.local_addr())?;
/// scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
/// let mut reply = String::new();
/// scrape.read_to_string(&mut reply)?;
/// assert!(reply.contains("timer_pending_timeouts{timer=\"timer\"} 0\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the server stops it"]
pub struct Server {
    addr: SocketAddr,
    stopped: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(addr: ListenAddr, site: Site) -> io::Result<Self> {
        Self::start_with(addr, site, Limits::default())
    }

    fn start_with(addr: ListenAddr, site: Site, limits: Limits) -> io::Result<Self> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"));
        let socket = TcpListener::bind(addr.0).map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        let waker = Waker::new(&socket).map_err(failed)?;
        waker.limit_waits(limits.quiet).map_err(failed)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let clients = Clients::new(site, addr.ip().to_canonical().is_loopback(), limits, stopped.clone());
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(move || accept(&socket, clients))?;
        Ok(Self { addr, stopped, waker, thread: Some(thread) })
    }

    /// Returns the address on which the server listens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let server = LivePage::new(&TimerMetrics::new()).serve(0)?;
    /// println!("http://{}/metrics", server.local_addr());
    /// assert!(server.local_addr().ip().is_loopback());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("local_addr", &self.addr).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // ORDERING: Release, pairs with the Acquire in `accept`.
        self.stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // If neither step succeeds, the thread is not joined. It ends with the next connection.
        let is_woken = self.waker.wake() || connects(self.addr) || thread.is_finished();
        if is_woken && !is_serving(&self.stopped) {
            let _ = thread.join();
        }
    }
}

/// A second handle of the listening socket, by which the thread that waits in `accept` is woken.
struct Waker(#[cfg(unix)] TcpStream);

impl Waker {
    #[cfg(unix)]
    fn new(socket: &TcpListener) -> io::Result<Self> {
        Ok(Self(std::os::fd::OwnedFd::from(socket.try_clone()?).into()))
    }

    /// Returns `false` on systems that do not shut down listening sockets.
    #[cfg(unix)]
    fn wake(&self) -> bool {
        self.0.shutdown(Shutdown::Both).is_ok()
    }

    /// Limits each wait in `accept`. On systems where this has no effect, the history of the live
    /// page is kept until the next client comes.
    #[cfg(unix)]
    fn limit_waits(&self, limit: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(limit))
    }

    #[cfg(not(unix))]
    fn limit_waits(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    #[cfg(not(unix))]
    fn new(_: &TcpListener) -> io::Result<Self> {
        Ok(Self())
    }

    #[cfg(not(unix))]
    fn wake(&self) -> bool {
        false
    }
}

/// Connects to a socket that listens on `addr`. Returns `true` on success.
fn connects(addr: SocketAddr) -> bool {
    TcpStream::connect_timeout(&reachable(addr), Duration::from_secs(1)).is_ok()
}

/// Returns the address by which this machine reaches a socket that listens on `addr`. A link-local
/// address keeps its scope, which names the interface.
fn reachable(mut addr: SocketAddr) -> SocketAddr {
    match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => addr.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => addr.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    addr
}

#[cfg(test)]
mod tests;
