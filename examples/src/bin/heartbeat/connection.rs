//! Our end of a connection, with the kind of its peer, the actions of its two timeouts and a count
//! of heartbeats.
//!
//! The tasks of the timeouts run beside the thread that reads. Bytes that arrive while the
//! connection closes are too late.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use parking_lot::Mutex;

/// The message of a timeout that runs after an interval of silence.
pub(crate) const HEARTBEAT: &[u8] = b"?";

/// The behavior of a peer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Talks,
    Answers,
    Silent,
    /// The second connection to a silent peer, which answers there.
    Again,
}

impl Peer {
    pub(crate) fn of(number: usize) -> Self {
        [Self::Silent, Self::Answers, Self::Talks][number % 3]
    }

    pub(crate) fn among(self, all: usize) -> usize {
        (0..all).filter(|number| Self::of(*number) == self).count()
    }
}

/// Our end of a connection.
pub(crate) struct Connection {
    pub(crate) number: usize,
    pub(crate) peer: Peer,
    pub(crate) stream: TcpStream,
    sent: AtomicU32,
    heard: Mutex<Instant>,
    pub(crate) closed_after: Mutex<Option<Duration>>,
}

impl Connection {
    pub(crate) fn new(number: usize, peer: Peer, stream: TcpStream) -> Self {
        let heard = Mutex::new(Instant::now());
        let closed_after = Mutex::new(None);
        Self { number, peer, stream, sent: AtomicU32::new(0), heard, closed_after }
    }

    /// Sends a heartbeat. Called by the periodic timeout.
    pub(crate) fn beat(&self) {
        // ORDERING: Relaxed, here and below, because this is only a count.
        self.sent.fetch_add(1, Ordering::Relaxed);
        // A heartbeat that cannot be sent is not answered either.
        _ = (&self.stream).write(HEARTBEAT);
    }

    /// Closes the connection. Called by the other timeout.
    pub(crate) fn close(&self) {
        *self.closed_after.lock() = Some(self.heard.lock().elapsed());
        // A broken connection cannot be shut down, and need not be.
        _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(crate) fn heard(&self) {
        *self.heard.lock() = Instant::now();
    }

    pub(crate) fn sent(&self) -> u32 {
        // ORDERING: Relaxed, because this is only a count.
        self.sent.load(Ordering::Relaxed)
    }
}

/// Reads all available bytes. Returns `false` at the end of the stream.
pub(crate) fn drain(mut stream: &TcpStream, mut each: impl FnMut(u32)) -> bool {
    let mut buffer = [0; 256];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(bytes) => each(bytes as u32),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
