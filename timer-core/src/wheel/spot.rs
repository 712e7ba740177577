//! Where a value sits inside a wheel, and who is told when that changes.
//!
//! A wheel moves its values: a removal closes its gap with the last value of the bucket, a cascade carries values to a
//! finer level. Whoever wants to take a value out again has to know its present place, so the wheel reports each
//! change to its [`Places`]: the keyed wheels write it into their table of slots, others may store it in the value.
//!
//! Absent here: any check that a spot is current. A spot is only as good as the last report for its value.

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

    /// `value` is leaving the wheel and is about to be handed to the caller. By default nothing happens.
    fn gone(&mut self, value: &V) {
        let _ = value;
    }
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
