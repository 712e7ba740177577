//! The interface of the wheels below the keys. Values are inserted at locations and found again by
//! them.
//!
//! A raw wheel owns its [`Tracker`] and reports the [`Location`] of each value to it. The wheel
//! never looks into a value, and it keeps no table of all values, so an owner whose values store
//! their own locations pays for nothing else. A value that is in the wheel is always found by the
//! location that was reported last, even if the wheel has moved the value since.
//!
//! The owner ensures that fewer than 2^32 values are in the wheel at a time. The wheel does not
//! report that a value leaves, so a location that the owner names may be out of date. Therefore the
//! owner says which value it wants.
//!
//! Values expire in steps, so that an owner who works under a lock holds it for a short time. A
//! step does a bounded amount of work, in [`Base::take_overdue`] and [`RawWheel::take_next`].

use super::bucket::{Bucket, Dated, OVERDUE};
use super::discarded::Discarded;
use super::location::{Location, Tracker};
use std::mem;

/// The parts that both wheels have. The fields that insertions and removals write come last.
#[repr(C)]
pub(crate) struct Base<V, P> {
    pub(crate) tracker: P,
    /// Values that were due when they were inserted.
    pub(super) overdue: Bucket<V>,
    pub(crate) discarded: Discarded<V>,
    /// The time of the clock. Values that are due by then may still have to be taken out.
    pub(crate) now: u64,
    /// The number of values in the wheel.
    pub(crate) len: usize,
}

impl<V, P: Tracker<V>> Base<V, P> {
    pub(super) fn new(tracker: P) -> Self {
        Base { tracker, overdue: Bucket::new(OVERDUE), discarded: Discarded::new(), now: 0, len: 0 }
    }

    /// Returns `true` if values that were due when they were inserted have not been taken.
    #[inline]
    pub(crate) fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// Takes out the values that were due when they were inserted. `due` must be empty.
    pub(crate) fn take_overdue(&mut self, due: &mut Bucket<V>) {
        self.len -= self.overdue.take(due, &mut self.discarded);
    }

    /// Takes out the memory that the wheel has given up. An owner who holds a lock calls this
    /// before it leaves the lock and frees the memory afterwards.
    pub(crate) fn take_discarded(&mut self) -> Discarded<V> {
        mem::replace(&mut self.discarded, Discarded::new())
    }

    /// Inserts a value that is due, without counting it.
    #[inline]
    pub(super) fn insert_overdue(&mut self, dated: Dated<V>) {
        self.overdue.push(dated, &mut self.tracker, &mut self.discarded);
    }
}

/// A bucket with values, and the ticks at which they may be due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketSpan {
    /// The number of the bucket.
    pub(crate) bucket: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) values: u32,
}

impl BucketSpan {
    /// The largest number of buckets of a wheel.
    pub(crate) const MAX: usize = 1025;

    pub(super) fn new<V>(id: u32, (first, last): (u64, u64), bucket: &Bucket<V>) -> Option<Self> {
        (bucket.values > 0).then_some(BucketSpan { bucket: id, first, last, values: bucket.values })
    }
}

/// A bucket of a wheel, and the parts of the wheel that the upkeep of a bucket needs.
pub(crate) type BucketParts<'a, V, P> = (&'a mut Bucket<V>, &'a mut P, &'a mut Discarded<V>);

/// A timing wheel whose values are addressed by their locations.
pub(crate) trait RawWheel {
    type Value;
    /// The receiver of the values' locations.
    type Tracker: Tracker<Self::Value>;

    /// Inserts `value`, to be due at `deadline`, and reports its location. A deadline up to `now`
    /// is overdue at once.
    fn insert(&mut self, deadline: u64, value: Self::Value);

    /// Returns the bucket with this number, of any generation.
    fn bucket(&self, number: u32) -> Option<&Bucket<Self::Value>>;

    /// Returns the buckets that have values, of which there are at most [`BucketSpan::MAX`]. Those
    /// of a hierarchical wheel come in the order of their ticks.
    fn spans(&self) -> impl Iterator<Item = BucketSpan>;

    /// Returns the bucket with this number, of any generation, and what its upkeep needs.
    fn bucket_mut(&mut self, number: u32) -> Option<BucketParts<'_, Self::Value, Self::Tracker>>;

    /// Keeps up a bucket after the removal of a value with the deadline `removed` at `location`.
    fn keep_up(&mut self, location: Location, removed: u64);

    /// Notes that a value with this deadline has left a bucket.
    #[inline]
    fn removed(&mut self, number: u32, deadline: u64) {
        let _ = (number, deadline);
    }

    /// Returns `true` if a further [`take_next`](Self::take_next) would bring a bound up to date,
    /// even if nothing is due.
    fn has_stale_bound(&self) -> bool {
        false
    }

    /// Moves the clock of an empty wheel to `now`. The owner calls this before it inserts into an
    /// empty wheel. Otherwise, after a long time without any value, the clock would be far behind,
    /// and new values would all be put into one coarse bucket.
    fn fast_forward(&mut self, now: u64) {
        let base = self.base_mut();
        debug_assert!(base.len == 0);
        base.now = base.now.max(now);
    }

    /// Removes the value that was last reported at `location`, if it is still in the wheel and is
    /// `wanted`.
    #[inline(always)]
    fn remove(&mut self, location: Location, wanted: impl Fn(&Self::Value) -> bool) -> Option<Self::Value> {
        let (bucket, ..) = self.bucket_mut(location.number())?;
        let ((deadline, value), needs_upkeep) = bucket.remove(location.position, wanted)?;
        self.base_mut().len -= 1;
        self.removed(location.number(), deadline);
        if needs_upkeep {
            self.keep_up(location, deadline);
        }
        Some(value)
    }

    /// Returns the value that was last reported at `location`, and its deadline. If that value has
    /// left the wheel, returns `None` or another value.
    #[inline]
    fn get(&self, location: Location) -> Option<(u64, &Self::Value)> {
        self.bucket(location.number())?.value(location.position)
    }

    /// Takes a step towards `now`, which moves the clock and takes out some of the values that are
    /// due, perhaps none. Returns `false` once nothing else is due by `now`. The clock is never
    /// moved back. `due` must be empty. A value that is inserted between two steps and is due by
    /// the clock is overdue.
    fn take_next(&mut self, now: u64, due: &mut Bucket<Self::Value>) -> bool;

    /// Returns the number of values that cascaded to a finer level since the last call.
    fn take_cascaded(&mut self) -> u64 {
        0
    }

    /// Returns a tick not after the earliest deadline. It may be earlier if the earliest value was
    /// removed, and it is at most `now` while a bucket is read in several steps. Returns `None`
    /// exactly if the wheel has no values but overdue ones.
    fn earliest(&self) -> Option<u64>;

    /// Returns a tick after `now` and not after the earliest deadline, or the next tick if a
    /// value is overdue. Returns `None` exactly if the wheel is empty.
    fn next_deadline(&self) -> Option<u64> {
        let next = self.base().now.saturating_add(1);
        if self.base().has_overdue() { Some(next) } else { self.earliest().map(|earliest| earliest.max(next)) }
    }

    /// Removes all values and returns them with their deadlines, in no particular order. The
    /// iterator frees the memory. The clock stays.
    fn drain(&mut self) -> impl Iterator<Item = Dated<Self::Value>>;

    fn base(&self) -> &Base<Self::Value, Self::Tracker>;

    fn base_mut(&mut self) -> &mut Base<Self::Value, Self::Tracker>;
}
