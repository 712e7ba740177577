//! Reads and writes that end at an instant, however the other side splits its bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Reads some bytes. Fails with `TimedOut` at the deadline.
pub(super) fn read(mut stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    retry(|| {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        stream.read(buffer)
    })
}

/// Writes all bytes. Fails with `TimedOut` at the deadline.
pub(super) fn write(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = retry(|| {
            stream.set_write_timeout(Some(time_left(deadline)?))?;
            stream.write(bytes)
        })?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Returns the remaining time. Fails instead of returning zero, which a socket takes for "no
/// timeout".
fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The error of a socket's timeout differs between systems.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            result => return result,
        }
    }
}
