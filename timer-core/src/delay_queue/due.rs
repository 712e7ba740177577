//! The items of a queue that are due, in the order in which they come out.
//!
//! A tick may have millions of items, and sorting all of them takes long. Therefore the list
//! consists of runs that are sorted one by one. Between two runs another thread can use the queue.
//! A heap finds the run that has the first item. A run has [`RUN`] items, because sorting a longer
//! run would take too long, and with shorter runs the heap would not fit into the first-level
//! cache.
//!
//! An item that is removed stays in the list until it is the first one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::mem;

/// The number of items in a run, which takes about 0.1 ms to sort. Tests use short runs.
const RUN: usize = if cfg!(test) { 64 } else { 4096 };

/// The number of items for which an empty list keeps room.
const MAX_KEPT_CAPACITY: usize = 256;

/// An item that is due. Items compare in the order in which they come out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    /// The bits of the deadline.
    pub(super) bits: u64,
    /// The number of the insertion into the wheel.
    pub(super) insertion: u64,
    /// The row of the item.
    pub(super) index: usize,
}

/// Sorted items, the first of which is at the end. The greatest run has the first item of all.
struct Run {
    first: Due,
    items: Vec<Due>,
}

impl Ord for Run {
    fn cmp(&self, other: &Self) -> Ordering {
        other.first.cmp(&self.first)
    }
}

impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Run {}

/// The items that are due.
#[derive(Default)]
pub(super) struct DueList {
    /// The run with the first item of all, which is at its end.
    current: Vec<Due>,
    others: BinaryHeap<Run>,
    /// The items that are in no run yet.
    unsorted: Vec<Due>,
}

impl DueList {
    /// Adds some items in any order.
    pub(super) fn extend(&mut self, items: impl Iterator<Item = Due>) {
        self.unsorted.extend(items);
        if self.unsorted.len() >= RUN {
            self.sort();
        }
    }

    /// Sorts the items that were added last. None of them comes out until then.
    pub(super) fn sort(&mut self) {
        self.unsorted.sort_unstable_by(|a, b| b.cmp(a));
        if self.current.is_empty() {
            mem::swap(&mut self.current, &mut self.unsorted);
        } else if let Some(first) = self.unsorted.last().copied() {
            self.others.push(Run { first, items: mem::take(&mut self.unsorted) });
        }
        self.choose_run();
    }

    /// Returns the first item.
    #[inline]
    pub(super) fn first(&self) -> Option<&Due> {
        self.current.last()
    }

    /// Removes the first item.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Due> {
        let first = self.current.pop();
        if !self.others.is_empty() {
            self.choose_run();
        }
        first
    }

    /// Makes the run with the first item the current one.
    #[inline(never)]
    fn choose_run(&mut self) {
        let Some(mut run) = self.others.peek_mut() else { return };
        match self.current.last() {
            None => self.current = PeekMut::pop(run).items,
            Some(first) if run.first < *first => {
                run.first = *first;
                mem::swap(&mut run.items, &mut self.current);
            }
            Some(_) => {}
        }
    }

    /// Removes all items. Keeps the memory if it is small.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.current.capacity().max(self.unsorted.capacity()) > MAX_KEPT_CAPACITY || !self.others.is_empty() {
            *self = Self::default();
        }
        self.current.clear();
        self.unsorted.clear();
    }

    #[cfg(all(test, not(timer_loom)))]
    pub(super) fn len(&self) -> usize {
        self.current.len() + self.others.iter().map(|run| run.items.len()).sum::<usize>()
    }
}
