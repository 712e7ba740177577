//! A tournament tree of lower bounds, one for each list of a ring.

use crate::wheel::chunks::Chunks;

const BITS: u32 = 4;

/// The number of bounds whose minimum is one bound of the next level.
const FAN: usize = 1 << BITS;

/// The bounds of all lists. `u64::MAX` is the bound of an empty list, and also a legal deadline.
#[derive(Default)]
pub(super) struct Bounds {
    /// The first level has one bound for each list, and each further level the minima of [`FAN`]
    /// bounds. The last level has one bound, or none if there are no lists. Levels are added but
    /// never removed, so several of the last ones may have one bound.
    levels: Vec<Chunks<u64>>,
}

impl Bounds {
    /// Returns the earliest bound.
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.levels.last().and_then(|level| level.get(0)).copied().unwrap_or(u64::MAX)
    }

    #[inline]
    pub(super) fn get(&self, list: usize) -> u64 {
        self.levels.first().and_then(|level| level.get(list)).copied().unwrap_or(u64::MAX)
    }

    /// Returns a list that has the earliest bound.
    pub(super) fn first(&self) -> usize {
        let earliest = self.earliest();
        self.levels.iter().rev().fold(0, |parent, level| {
            let children = level.group(parent, FAN);
            parent << BITS | children.iter().position(|bound| *bound == earliest).unwrap_or(0)
        })
    }

    /// Lowers the bound of a list to `deadline`, unless it is lower.
    #[inline]
    pub(super) fn lower(&mut self, mut list: usize, deadline: u64) {
        for level in &mut self.levels {
            match level.get_mut(list) {
                Some(bound) if *bound > deadline => *bound = deadline,
                _ => return,
            }
            list >>= BITS;
        }
    }

    /// Replaces the bound of a list.
    pub(super) fn set(&mut self, mut list: usize, mut new: u64) {
        for at in 0..self.levels.len() {
            match self.levels[at].get_mut(list) {
                Some(bound) if *bound != new => *bound = new,
                _ => return,
            }
            list >>= BITS;
            new = self.levels[at].group(list, FAN).iter().fold(u64::MAX, |min, bound| min.min(*bound));
        }
    }

    /// Adds the bound of an empty list or removes the last bound, so that there are `len`. A bound
    /// that is removed must be that of an empty list. Calls `discard` with memory that is not used
    /// any more.
    pub(super) fn set_len(&mut self, mut len: usize, mut discard: impl FnMut(Vec<u64>)) {
        for level in &mut self.levels {
            if level.len() < len {
                level.push(u64::MAX);
            } else if level.len() > len {
                level.pop(&mut discard);
            }
            len = len.div_ceil(FAN);
        }
        if self.levels.last().is_none_or(|level| level.len() > 1) {
            // If that level has two bounds, the second one is new.
            let mut level = Chunks::default();
            level.push(self.earliest());
            self.levels.push(level);
        }
    }
}

#[cfg(test)]
impl Bounds {
    /// Asserts that each bound is the minimum of those below it.
    pub(super) fn check(&self, lists: usize) {
        assert_eq!(self.levels.first().map_or(0, Chunks::len), lists);
        assert_eq!(self.levels.last().map_or(0, Chunks::len), lists.min(1));
        for pair in self.levels.windows(2) {
            assert_eq!(pair[1].len(), pair[0].len().div_ceil(FAN));
            for (at, bound) in pair[1].iter().enumerate() {
                assert_eq!(Some(bound), pair[0].group(at, FAN).iter().min());
            }
        }
    }
}
