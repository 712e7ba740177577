//! The location of a value in a wheel, and the trait that is told of it.
//!
//! To remove a value, its owner has to know where it is. So a wheel reports the location of each
//! value that is inserted to its [`Tracker`]. The keyed wheels write it into their table, and the
//! timer writes it into the entry.
//!
//! A wheel does not report that a value has left, because that would cost a cache miss for each
//! value that expires. A location may therefore be out of date. A caller says which value it wants,
//! or relies on the generation of the bucket
//! ([`RawHierarchical::vacate`](super::RawHierarchical::vacate)).

/// A position in a bucket of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The name of the bucket. The low bits are its number in the wheel, and the others its
    /// generation.
    pub(crate) bucket: u32,
    pub(crate) position: u32,
}

/// The generations of a bucket differ by this much.
pub(super) const GENERATION: u32 = 1 << 16;

impl Location {
    /// The location of a value that is in no wheel. No bucket has this number.
    pub(crate) const NONE: Location = Location::new(u32::MAX, u32::MAX);

    /// The location of a value that has left its wheel and whose reference the canceller has taken
    /// over from the wheel. No bucket has this number.
    pub(crate) const REFERENCE_TAKEN: Location = Location::new(u32::MAX - 2, u32::MAX);

    #[inline]
    pub(crate) const fn new(bucket: u32, position: u32) -> Location {
        Location { bucket, position }
    }

    /// Returns the number of the bucket, without its generation.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.bucket % GENERATION
    }
}

/// A listener that keeps the locations of all values.
pub(crate) trait Tracker<V> {
    /// Records that `value` was inserted at `location`, or was moved there.
    fn moved(&mut self, value: &V, location: Location);

    /// Fetches the memory that [`moved`](Self::moved) will write into the cache.
    #[inline]
    fn prefetch(value: &V) {
        let _ = value;
    }
}
