//! Memory that was written to and freed, and that the allocator keeps for the process.

use std::hint::black_box;

/// The size of a piece in bytes, which is too small for an allocator to map it separately.
#[cfg(feature = "held")]
const PIECE: usize = 64 << 10;

/// A block of memory above freed memory. It keeps the allocator from returning the freed memory to
/// the system.
pub(super) struct HeapPin(#[expect(dead_code, reason = "it only has to be there")] Vec<u8>);

impl Default for HeapPin {
    fn default() -> Self {
        Self(black_box(vec![0; 64]))
    }
}

/// Writes to at least `bytes` bytes of memory and frees them, except for the highest piece. The
/// allocator keeps the freed memory until the returned pin is dropped.
#[cfg(feature = "held")]
pub(super) fn touch(bytes: usize) -> HeapPin {
    let mut pieces: Vec<Vec<u8>> = (0..=bytes / PIECE).map(|_| black_box(vec![1; PIECE])).collect();
    pieces.sort_unstable_by_key(|piece| piece.as_ptr());
    HeapPin(pieces.pop().unwrap_or_default())
}
