//! A tree of minima, which finds the earliest list of a ring.

/// A complete binary tree, in which each node has the minimum of its two children. The root is the
/// element 1, and the children of element `n` are `2 * n` and `2 * n + 1`. The last half of the
/// elements are the minima of the lists. That of an empty list is `u64::MAX`.
pub(super) struct Minima(Box<[u64]>);

impl Minima {
    /// Creates the tree of empty lists, whose number is a power of two.
    pub(super) fn new(lists: usize) -> Self {
        Minima(vec![u64::MAX; 2 * lists].into())
    }

    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.0[1]
    }

    /// Returns a list that has the earliest minimum.
    pub(super) fn first(&self) -> usize {
        let lists = self.0.len() / 2;
        let mut at = 1;
        while at < lists {
            at = 2 * at + usize::from(self.0[2 * at] > self.0[2 * at + 1]);
        }
        at - lists
    }

    /// Lowers the minimum of a list to `deadline`, unless it is lower.
    #[inline]
    pub(super) fn lower(&mut self, list: usize, deadline: u64) {
        let mut at = self.0.len() / 2 + list;
        while at > 0 && self.0[at] > deadline {
            self.0[at] = deadline;
            at /= 2;
        }
    }

    /// Replaces the minimum of a list.
    pub(super) fn set(&mut self, list: usize, earliest: u64) {
        let mut at = self.0.len() / 2 + list;
        self.0[at] = earliest;
        while at > 1 {
            at /= 2;
            let earliest = self.0[2 * at].min(self.0[2 * at + 1]);
            if std::mem::replace(&mut self.0[at], earliest) == earliest {
                return;
            }
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
impl Minima {
    /// Asserts that each element is the minimum of its children, and returns those of the lists.
    pub(super) fn check(&self) -> &[u64] {
        let lists = self.0.len() / 2;
        assert!((1..lists).all(|at| self.0[at] == self.0[2 * at].min(self.0[2 * at + 1])));
        &self.0[lists..]
    }
}
