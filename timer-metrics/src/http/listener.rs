//! The thread that accepts, and the threads of the clients.
//!
//! The accepting thread owns the list of clients; no other thread touches it. Each client's thread owns its socket and closes it
//! when it ends. The list refers to it weakly, only to shut it down, which ends whatever that thread waits for.
//!
//! *Stopping*: the flag is set, a connection of our own wakes the accepting thread, and that shuts down all sockets and joins
//! all threads.

use super::address::ListenAddr;
use super::exchange::exchange;
use super::limits::Limits;
use super::stage::Stage;
use prometheus_client::registry::Registry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const NAME: &str = "timer-metrics";

/// After an error of the system, such as no more file handles, it tries again.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens until it is dropped.
pub(super) struct Listener {
    addr: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start(addr: ListenAddr, registry: Arc<Registry>, limits: Limits) -> io::Result<Self> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"));
        let socket = TcpListener::bind(addr.0).map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let clients = Clients { registry, limits, served: Vec::new() };
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(move || accept(&socket, &flag, clients))?;
        Ok(Self { addr, stopped, thread: Some(thread) })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `accept`.
        self.stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // If even this connection fails, the thread is not waited for: it ends with the next one that comes.
        if TcpStream::connect_timeout(&reachable(self.addr), Duration::from_secs(1)).is_ok() || thread.is_finished() {
            let _ = thread.join();
        }
    }
}

/// Where one connects to reach a socket that listens on `addr`.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

fn accept(socket: &TcpListener, stopped: &AtomicBool, mut clients: Clients) {
    loop {
        let accepted = socket.accept();
        // ORDERING: Acquire pairs with the Release in `drop`.
        if stopped.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok((stream, _)) => clients.serve(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => thread::park_timeout(PAUSE),
        }
    }
}

/// All clients. Dropping it ends and joins them.
struct Clients {
    registry: Arc<Registry>,
    limits: Limits,
    /// In the order in which they came.
    served: Vec<Client>,
}

struct Client {
    socket: Weak<TcpStream>,
    stage: Arc<Stage>,
    thread: JoinHandle<()>,
}

impl Clients {
    /// Gives a client its thread. If there are too many, the one that has been here longest makes room; if collectors hold
    /// them all, the new one is sent away: more threads would not make the collectors faster.
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
        let (registry, limits) = (self.registry.clone(), self.limits);
        let serve = move || exchange(&stream, &registry, limits, &own_stage);
        // Without a thread the client is sent away.
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
            // Fails for a connection that the client has ended, which is what is wanted.
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
