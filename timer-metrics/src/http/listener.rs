//! The thread that accepts connections, and the threads of the clients.
//!
//! The accepting thread owns the list of clients, and no other thread touches it. Each client's
//! thread owns its socket and closes it when it ends. The list has a weak reference to the socket,
//! only to shut it down, which ends any wait of that thread.
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

use super::address::ListenAddr;
use super::exchange::exchange;
use super::limits::Limits;
use super::site::Site;
use super::stage::Stage;
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const NAME: &str = "timer-metrics";

/// The pause after an error of the system, such as a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

thread_local! {
    /// The flag of the listener whose client this thread serves.
    static SERVED: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

/// A listening socket with its threads. Dropping it stops and joins them.
pub(super) struct Listener {
    addr: SocketAddr,
    stopped: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start(addr: ListenAddr, site: Arc<Site>, limits: Limits) -> io::Result<Self> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"));
        let socket = TcpListener::bind(addr.0).map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        let waker = Waker::new(&socket).map_err(failed)?;
        waker.limit_waits(limits.quiet).map_err(failed)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let clients = Clients { site, limits, stopped: stopped.clone(), served: Vec::new() };
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(move || accept(&socket, clients))?;
        Ok(Self { addr, stopped, waker, thread: Some(thread) })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // ORDERING: Release, pairs with the Acquire in `accept`.
        self.stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // If neither step succeeds, the thread is not joined. It ends with the next connection.
        let is_woken = self.waker.wake() || connects(self.addr) || thread.is_finished();
        if is_woken && SERVED.get() != Arc::as_ptr(&self.stopped) {
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

fn accept(socket: &TcpListener, mut clients: Clients) {
    loop {
        let accepted = socket.accept();
        // ORDERING: Acquire, pairs with the Release in `drop`.
        if clients.stopped.load(Ordering::Acquire) {
            return;
        }
        clients.site.age();
        match accepted {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok((stream, _)) => clients.serve(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => thread::park_timeout(PAUSE),
        }
    }
}

/// All clients. Dropping this shuts their sockets down and joins their threads.
struct Clients {
    site: Arc<Site>,
    limits: Limits,
    stopped: Arc<AtomicBool>,
    /// The clients in the order of their connections.
    served: Vec<Client>,
}

struct Client {
    socket: Weak<TcpStream>,
    stage: Arc<Stage>,
    thread: JoinHandle<()>,
}

impl Clients {
    /// Starts the thread of a client. If there are too many clients, cuts off the oldest one that
    /// is not in the collectors. If all of them are there, refuses the new client, because more
    /// threads would not make the collectors faster.
    fn serve(&mut self, stream: TcpStream) {
        self.served.retain(|client| !client.thread.is_finished());
        if self.served.len() >= self.limits.clients {
            match self.served.iter().position(|client| client.stage.cut_off()) {
                Some(oldest) => self.served.remove(oldest).end(),
                None => return,
            }
        }
        let stream = Arc::new(stream);
        let stage = Arc::new(Stage::default());
        let (socket, own_stage) = (Arc::downgrade(&stream), stage.clone());
        let (site, limits, stopped) = (self.site.clone(), self.limits, self.stopped.clone());
        let serve = move || {
            SERVED.set(Arc::as_ptr(&stopped));
            exchange(&stream, &site, limits, &own_stage);
        };
        // If the system gives no thread, the connection is closed.
        if let Ok(thread) = thread::Builder::new().name(NAME.to_owned()).spawn(serve) {
            self.served.push(Client { socket, stage, thread });
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.served.iter().for_each(Client::hang_up);
        self.served.drain(..).for_each(Client::end);
    }
}

impl Client {
    fn hang_up(&self) {
        if let Some(socket) = self.socket.upgrade() {
            // Fails if the client has already closed the connection. That is as good.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn end(self) {
        self.hang_up();
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests;
