//! A proxy between nodes and server, which delays, cuts and refuses connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The faults of a proxy. All of them may change while connections are open.
#[derive(Default)]
pub(crate) struct Faults {
    /// Bytes after which the connection that transfers them is cut. Negative if none is cut.
    cut: AtomicI64,
    /// Milliseconds for which each answer of the server waits.
    delay: AtomicU64,
    refuses: AtomicBool,
}

/// A proxy on a free port of the loopback interface. Its threads end with the test.
pub(crate) struct Proxy {
    port: u16,
    faults: Arc<Faults>,
}

// ORDERING: Relaxed in this module, each fault is a separate value, and a late look does no harm.
impl Proxy {
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let faults = Arc::new(Faults { cut: AtomicI64::new(-1), ..Faults::default() });
        let shared = faults.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.refuses.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to, is_answer) in [(&client, &server, false), (&server, &client, true)] {
                    let from = from.try_clone().expect("a socket");
                    let to = to.try_clone().expect("a socket");
                    let faults = shared.clone();
                    std::thread::spawn(move || transfer(from, to, is_answer, &faults));
                }
            }
        });
        Self { port, faults }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection that transfers the byte with this number, counted from now over all
    /// connections.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.faults.cut.store(bytes, Ordering::Relaxed);
    }

    /// Returns `true` if no cut is waiting for its byte.
    pub(crate) fn has_cut(&self) -> bool {
        self.faults.cut.load(Ordering::Relaxed) < 0
    }

    /// Delays the answers of the server.
    pub(crate) fn delay(&self, time: Duration) {
        self.faults.delay.store(time.as_millis() as u64, Ordering::Relaxed);
    }

    /// Refuses new connections, and cuts all others at their next byte.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.faults.refuses.store(refuses, Ordering::Relaxed);
    }
}

fn transfer(mut from: TcpStream, mut to: TcpStream, is_answer: bool, faults: &Faults) {
    let mut buffer = [0; 16_384];
    while let Ok(count) = from.read(&mut buffer) {
        let delay = faults.delay.load(Ordering::Relaxed);
        if is_answer && delay > 0 {
            std::thread::sleep(Duration::from_millis(delay));
        }
        let left = faults.cut.load(Ordering::Relaxed);
        let mut passes = count;
        if left >= 0 {
            let after = faults.cut.fetch_sub(count as i64, Ordering::Relaxed) - count as i64;
            if after < 0 {
                passes = count.saturating_sub(after.unsigned_abs() as usize);
            }
        }
        let is_cut = count == 0 || passes < count || faults.refuses.load(Ordering::Relaxed);
        if to.write_all(&buffer[..passes]).is_err() || is_cut {
            break;
        }
    }
    _ = from.shutdown(Shutdown::Both);
    _ = to.shutdown(Shutdown::Both);
}
