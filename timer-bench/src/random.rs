//! The source of all delays and orders. SplitMix64 with a fixed seed gives every peer the same
//! sequence.

use std::ops::Range;
use std::time::Duration;

/// The seed of all delays.
pub const SEED: u64 = 42;

/// The addend of the state, 2^64 divided by the golden ratio.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator of Steele, Lea and Flood (2014), with 64 bits of state and one addition and a mix
/// per number.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates the sequence of all delays without its first `from` numbers. Each thread starts
    /// where the previous one ends.
    pub fn delays(from: usize) -> Self {
        Self { state: SEED.wrapping_add(GOLDEN_GAMMA.wrapping_mul(from as u64)) }
    }

    /// Returns the next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..bound`, or 0 if the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a duration within `range`, to the nanosecond.
    #[inline]
    pub fn duration(&mut self, range: &Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos() as u64;
        range.start + Duration::from_nanos(self.below(span))
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Returns the range from `first` to `last` seconds.
pub fn seconds(first: u64, last: u64) -> Range<Duration> {
    Duration::from_secs(first)..Duration::from_secs(last)
}

#[cfg(test)]
mod tests {
    use super::{SEED, SplitMix64, seconds};

    #[test]
    fn the_sequence_equals_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(published.map(|_| random.next_u64()), published);
    }

    #[test]
    fn a_thread_starts_where_the_previous_one_ends() {
        let mut whole = SplitMix64::new(SEED);
        let whole: Vec<u64> = (0..10).map(|_| whole.next_u64()).collect();
        let mut part = SplitMix64::delays(6);
        let part: Vec<u64> = (6..10).map(|_| part.next_u64()).collect();
        assert_eq!(part, whole[6..]);
    }

    #[test]
    fn durations_fill_their_range() {
        let mut random = SplitMix64::new(SEED);
        let range = seconds(10, 3600);
        let mut all: Vec<_> = (0..10_000).map(|_| random.duration(&range)).collect();
        all.sort_unstable();
        assert!(range.start <= all[0] && all[0].as_secs() < 20);
        assert!(all[9_999] < range.end && all[9_999].as_secs() >= 3590);
        let middle = all[5_000].as_secs();
        assert!((1_700..1_900).contains(&middle), "{middle}");
    }

    #[test]
    fn a_shuffle_keeps_all_items_and_moves_most() {
        let mut items: Vec<usize> = (0..1_000).collect();
        SplitMix64::new(SEED).shuffle(&mut items);
        let in_place = items.iter().enumerate().filter(|(at, item)| at == *item).count();
        assert!(in_place < 10, "{in_place}");
        items.sort_unstable();
        assert!(items.iter().enumerate().all(|(at, item)| at == *item));
    }

    #[test]
    fn a_bound_of_zero_gives_zero() {
        assert_eq!(SplitMix64::new(SEED).below(0), 0);
    }
}
