//! Our end of a connection: when it sends a heartbeat, and when it closes.
//!
//! The timeout's task beats and the reading thread hears, side by side; each number is one atomic, so the
//! worst that an answer which comes while a run begins can do is to count that run as missed.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use parking_lot::Mutex;

use crate::{HEARTBEAT, MISSES};

/// Our end of a connection.
pub(crate) struct Connection {
    pub(crate) number: usize,
    pub(crate) stream: TcpStream,
    missed: AtomicU32,
    sent: AtomicU32,
    heard: Mutex<Instant>,
    pub(crate) closed_after: Mutex<Option<Duration>>,
}

#[derive(PartialEq)]
pub(crate) enum Beat {
    Sent,
    Closed,
}

impl Connection {
    pub(crate) fn new(number: usize, stream: TcpStream) -> Self {
        let (missed, sent) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { number, stream, missed, sent, heard: Mutex::new(Instant::now()), closed_after: Mutex::new(None) }
    }

    /// What the timeout does.
    pub(crate) fn beat(&self) -> Beat {
        // ORDERING: Relaxed, here and below: each is a number alone, which orders nothing else.
        if self.missed.fetch_add(1, Ordering::Relaxed) < MISSES {
            self.sent.fetch_add(1, Ordering::Relaxed);
            // One that cannot be sent is not answered either.
            _ = (&self.stream).write(HEARTBEAT);
            return Beat::Sent;
        }
        *self.closed_after.lock() = Some(self.heard.lock().elapsed());
        // A connection that is broken already needs no end.
        _ = self.stream.shutdown(Shutdown::Both);
        Beat::Closed
    }

    pub(crate) fn heard(&self) {
        *self.heard.lock() = Instant::now();
        // ORDERING: Relaxed, as above.
        self.missed.store(0, Ordering::Relaxed);
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
