//! Our end of a connection: what its two timeouts do, and what it has heard.
//!
//! The timeouts' tasks run beside the thread that reads. What is heard while the connection is just being closed comes too
//! late: the close has won.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use parking_lot::Mutex;

use crate::HEARTBEAT;

/// Our end of a connection.
pub(crate) struct Connection {
    pub(crate) number: usize,
    pub(crate) stream: TcpStream,
    sent: AtomicU32,
    heard: Mutex<Instant>,
    pub(crate) closed_after: Mutex<Option<Duration>>,
}

impl Connection {
    pub(crate) fn new(number: usize, stream: TcpStream) -> Self {
        let (heard, closed_after) = (Mutex::new(Instant::now()), Mutex::new(None));
        Self { number, stream, sent: AtomicU32::new(0), heard, closed_after }
    }

    /// What the periodic timeout does.
    pub(crate) fn beat(&self) {
        // ORDERING: Relaxed, here and below: a number alone, which orders nothing else.
        self.sent.fetch_add(1, Ordering::Relaxed);
        // One that cannot be sent is not answered either.
        _ = (&self.stream).write(HEARTBEAT);
    }

    /// What the other timeout does.
    pub(crate) fn close(&self) {
        *self.closed_after.lock() = Some(self.heard.lock().elapsed());
        // A connection that is broken already needs no end.
        _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(crate) fn heard(&self) {
        *self.heard.lock() = Instant::now();
    }

    pub(crate) fn sent(&self) -> u32 {
        // ORDERING: Relaxed, as above.
        self.sent.load(Ordering::Relaxed)
    }
}

/// Reads all there is, and says whether the stream goes on.
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
