//! Where a value sits inside a wheel, and what is told when that changes.
//!
//! A wheel moves its values: a cascade carries them to a finer level, and a bucket that has become sparse closes up. To take a
//! value out again its owner has to know its place, so the wheel reports it to its [`Tracker`]: the keyed wheels write it into their
//! table of slots, others may store it in the value. A wheel may remember a change itself instead, and takes the location it has
//! reported last for the one where the value is now.
//!
//! Absent here: any report that a value has left. To write it down would cost a cache miss for each that comes due; instead,
//! a value that is in the wheel is always at its location: if it is not there, it has left.

/// A place in a wheel: which bucket, and which position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    bucket: u32,
    position: u32,
}

impl Location {
    /// In no wheel. No bucket bears this number.
    pub(crate) const NONE: Location = Location::new(u32::MAX, u32::MAX);

    /// In no wheel any more, and the wheel's reference to the value is the canceller's. No bucket bears this number.
    pub(crate) const HANDED_OVER: Location = Location::new(u32::MAX - 2, u32::MAX);

    #[inline]
    pub(crate) const fn new(bucket: u32, position: u32) -> Location {
        Location { bucket, position }
    }

    /// As one number.
    #[inline]
    pub(super) const fn to_bits(self) -> u64 {
        (self.bucket as u64) << 32 | self.position as u64
    }

    #[inline]
    pub(super) const fn from_bits(bits: u64) -> Location {
        Location::new((bits >> 32) as u32, bits as u32)
    }

    #[inline]
    pub(crate) const fn bucket(self) -> u32 {
        self.bucket
    }

    #[inline]
    pub(crate) const fn position(self) -> u32 {
        self.position
    }
}

/// Keeps track of where each value is.
pub(crate) trait Tracker<V> {
    /// `value` now sits at `location`: it came in, or it was moved.
    fn put(&mut self, value: &V, location: Location);
}
