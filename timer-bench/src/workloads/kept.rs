//! Memory that the process keeps after it was freed, so that it is not new to the process.

use std::hint::black_box;

/// The size of a piece, for which no allocator makes a mapping of its own.
#[cfg(feature = "held")]
const PIECE: usize = 64 << 10;

/// Memory above the rest, which keeps the allocator from returning the rest to the system.
pub(super) struct Pin(#[expect(dead_code, reason = "it only has to be there")] Vec<u8>);

impl Default for Pin {
    fn default() -> Self {
        Self(black_box(vec![0; 64]))
    }
}

/// Writes to so many bytes of memory and frees them. They stay in the process as long as the pin.
#[cfg(feature = "held")]
pub(super) fn touch(bytes: usize) -> Pin {
    let mut pieces: Vec<Vec<u8>> = (0..=bytes / PIECE).map(|_| black_box(vec![1; PIECE])).collect();
    pieces.sort_unstable_by_key(|piece| piece.as_ptr());
    Pin(pieces.pop().unwrap_or_default())
}
