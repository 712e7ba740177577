//! The format on the wire in both directions, a sequence of call numbers of eight bytes each.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const NUMBER: usize = size_of::<u64>();
const BUFFER: usize = 1 << 16;

/// A stream of incoming numbers.
pub(crate) struct Incoming<R> {
    stream: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::with_capacity(BUFFER) }
    }

    /// Waits for numbers and passes on all that have arrived. Returns `false` at the end of the
    /// stream.
    pub(crate) async fn next(&mut self, mut each: impl FnMut(u64)) -> io::Result<bool> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Ok(false);
        }
        let (numbers, _) = self.buffer.as_chunks::<NUMBER>();
        numbers.iter().for_each(|number| each(u64::from_le_bytes(*number)));
        let whole = numbers.len() * NUMBER;
        self.buffer.drain(..whole);
        Ok(true)
    }
}

/// Sends numbers in one piece.
pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    stream.write_all(&bytes).await
}
