//! Where a value sits inside a wheel, and who is told when that changes.
//!
//! A wheel moves its values: a cascade carries them to a finer level, and a bucket that has become sparse closes up. Whoever
//! wants to take a value out again has to know its present place, so the wheel reports each change to its [`Places`]: the
//! keyed wheels write it into their table of slots, others may store it in the value.
//!
//! Absent here: any report that a value has left. To write it down would cost a cache miss for each that comes due; instead,
//! a value that is in the wheel is always at its spot, so whoever does not find it there knows that it has left.

/// A place in a wheel: which bucket, and which position in it. Packs into 64 bits, so that it fits one atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    bucket: u32,
    position: u32,
}

impl Spot {
    /// In no wheel. No bucket bears this number.
    pub(crate) const NONE: Spot = Spot::new(u32::MAX, u32::MAX);

    pub(super) const fn new(bucket: u32, position: u32) -> Spot {
        Spot { bucket, position }
    }

    pub(super) const fn bucket(self) -> u32 {
        self.bucket
    }

    pub(super) const fn position(self) -> u32 {
        self.position
    }

    /// The spot as one word: the bucket in the upper half.
    pub(crate) const fn to_bits(self) -> u64 {
        (self.bucket as u64) << 32 | self.position as u64
    }

    /// The inverse of [`to_bits`](Spot::to_bits).
    pub(crate) const fn from_bits(bits: u64) -> Spot {
        Spot::new((bits >> 32) as u32, bits as u32)
    }
}

/// Keeps track of where each value is.
pub(crate) trait Places<V> {
    /// `value` now sits at `spot`: it came in, or it was moved.
    fn put(&mut self, value: &V, spot: Spot);
}

#[cfg(test)]
mod tests {
    use super::Spot;

    #[test]
    fn a_spot_survives_the_way_through_its_bits() {
        for bucket in [0, 1, 703, 1 << 30, u32::MAX - 1, u32::MAX] {
            for position in [0, 1, u32::MAX - 1, u32::MAX] {
                let spot = Spot::new(bucket, position);
                assert_eq!(Spot::from_bits(spot.to_bits()), spot);
            }
        }
        assert_eq!(Spot::NONE.to_bits(), u64::MAX);
    }
}
