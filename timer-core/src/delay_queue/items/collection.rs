//! The collection of the items that are due.
//!
//! The items of one tick are collected together, because they come out in the order of their exact
//! deadlines. Threads that share a queue collect in steps of a chunk of the wheel, and items may be
//! inserted, moved and removed between two steps. Nothing comes out until the last step.

use super::{Collection, DUE_LIST, Items, Order, bits};
use crate::deadline::{Deadline, IMMEDIATE};
use crate::delay_queue::due::Due;
use crate::wheel::{CHUNK, Location, RawWheel, Tracker};

impl<T> Items<T> {
    /// Moves the clock of the wheel towards `now` until items are due, and puts these into the
    /// list. Returns `false` if nothing is due by `now`, and `None` if more steps are needed.
    ///
    /// Ticks are handed out in order, so a collection takes all buckets of one tick. It takes the
    /// overdue items together with the first tick. Otherwise they would hold back that tick for as
    /// long as further overdue items arrive.
    pub(super) fn collect(&mut self, now: u64) -> Option<bool> {
        for _ in 0..self.max_steps {
            match self.collection {
                _ if !self.step.is_empty() => self.collect_chunk(),
                Collection::Buckets(tick) if self.raw.earliest().is_some_and(|next| next <= tick) => {
                    self.raw.take_next(tick, &mut self.step);
                    self.collect_chunk();
                }
                Collection::Buckets(_) if self.raw.base().has_overdue() => {
                    self.raw.base_mut().take_overdue(&mut self.step);
                    self.collection = Collection::Overdue;
                }
                Collection::Buckets(_) | Collection::Overdue => {
                    self.due.sort();
                    self.collection = Collection::Complete;
                }
                Collection::Complete if self.waiting > 0 => return Some(true),
                Collection::Complete => {
                    let tick = self.raw.earliest().filter(|next| *next <= now);
                    if tick.is_some() || self.raw.base().has_overdue() {
                        self.collection = Collection::Buckets(tick.unwrap_or(IMMEDIATE));
                    } else if !self.raw.take_next(now, &mut self.step) {
                        // `take_next` has moved the clock of the wheel, so later insertions are
                        // near it.
                        self.free_discarded();
                        return Some(false);
                    }
                }
            }
            self.free_discarded();
        }
        None
    }

    /// Returns `true` if the list does not have all items of its ticks yet.
    #[inline]
    pub(in crate::delay_queue) fn is_collecting(&self) -> bool {
        !matches!(self.collection, Collection::Complete)
    }

    /// Moves the items of a chunk to the list. Relinks items that were moved to a later deadline,
    /// unless they were due when they were linked.
    fn collect_chunk(&mut self) {
        let Self { raw, step, due, resolution, insertions, waiting, .. } = self;
        let insertions = *insertions;
        self.next_chunk = step.drain_chunk(self.next_chunk, |chunk| {
            due.extend(chunk.drain().filter_map(|(tick, item)| {
                let bits = bits(&raw.base().tracker, item);
                let later = resolution.tick_of(Deadline::from_bits(bits));
                if later > tick && tick != IMMEDIATE {
                    raw.insert(later, item);
                    return None;
                }
                raw.base_mut().tracker.moved(&item, Location::new(DUE_LIST, item.value));
                *waiting += 1;
                let age = (insertions as Order).wrapping_sub(item.value);
                Some(Due { bits, insertion: insertions - u64::from(age), index: item.index() })
            }));
        });
    }

    /// Removes items that have left the queue from the front of the list. Returns `false` if there
    /// may be more of them.
    #[inline]
    pub(super) fn trim_due(&mut self) -> bool {
        if self.waiting == 0 {
            self.due.clear();
            self.removed = 0;
        }
        self.removed == 0 || self.trim_removed()
    }

    #[cold]
    fn trim_removed(&mut self) -> bool {
        for _ in 0..self.max_steps.saturating_mul(CHUNK) {
            let Some(first) = self.due.first() else { return true };
            let location = Location::new(DUE_LIST, first.insertion as Order);
            let row = self.raw.base().tracker.rows.get(first.index);
            if row.is_some_and(|row| row.location == location) {
                return true;
            }
            self.due.pop();
            self.removed -= 1;
        }
        false
    }
}
