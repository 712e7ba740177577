//! The thread that accepts connections, and the threads of the clients.
//!
//! The accepting thread owns the list of clients, and no other thread touches it. Each client's
//! thread owns its socket and closes it when it ends. The list has a weak reference to the socket,
//! only to shut it down, which ends any wait of that thread.

use super::exchange::exchange;
use super::limits::Limits;
use super::stage::Stage;
use crate::http::Request;
use crate::site::Site;
use std::cell::Cell;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The name of the threads.
pub(super) const NAME: &str = "timer-live";

/// The pause after an error of the system, such as a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

thread_local! {
    /// The flag of the server whose client this thread serves.
    static SERVED: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

/// Returns `true` on the thread of a client of the server with this flag.
pub(super) fn is_serving(stopped: &Arc<AtomicBool>) -> bool {
    SERVED.get() == Arc::as_ptr(stopped)
}

/// Accepts connections until the server is stopped.
pub(super) fn accept(socket: &TcpListener, mut clients: Clients) {
    loop {
        let accepted = socket.accept();
        // ORDERING: Acquire, pairs with the Release in the server's `drop`.
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
pub(super) struct Clients {
    site: Site,
    /// Set on a loopback address, where a request must name a known host.
    is_local: bool,
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
    pub(super) fn new(site: Site, is_local: bool, limits: Limits, stopped: Arc<AtomicBool>) -> Self {
        Self { site, is_local, limits, stopped, served: Vec::new() }
    }

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
        let socket = Arc::downgrade(&stream);
        let site = self.site.clone();
        let is_local = self.is_local;
        let limits = self.limits;
        let own_stage = stage.clone();
        let stopped = self.stopped.clone();
        let serve = move || {
            SERVED.set(Arc::as_ptr(&stopped));
            let answer =
                |request: &Request| if is_local { site.respond_locally(request) } else { site.respond_to(request) };
            exchange(&stream, answer, limits, &own_stage);
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
