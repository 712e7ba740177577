//! What both wheels can do below the keys: values are linked at locations, and found again by them.
//!
//! A raw wheel owns its [`Tracker`] and reports to it a value's [`Location`], and again when it has moved in a way that the wheel does not
//! remember itself. It never looks into a value.
//! It keeps no table of all of them, so an owner whose values remember their locations pays for nothing else.
//!
//! The owner sees to it that fewer than 2^32 values are linked at a time. The wheel does not report that a value leaves, so a
//! location that the owner names may be out of date: the owner says which value it wants there.
//!
//! Expiry is in steps, so that an owner who works under a lock holds it for a short time: each takes out a whole bucket, or looks at
//! a bounded number of values ([`RawWheel::take_overdue`], [`RawWheel::take_next`]).

use super::bucket::{Entry, Place};
use super::location::{Location, Tracker};

/// A timing wheel whose values are addressed by their locations.
pub(crate) trait RawWheel<V> {
    /// What is told of the values' locations.
    type Tracker: Tracker<V>;

    /// Links `value` to be due at `deadline`; its location is reported. A deadline up to `now()` is overdue at once.
    fn insert(&mut self, deadline: u64, value: V);

    /// For the owner, before it inserts into an empty wheel: it is `now`. Without this, what is inserted after a long time without any value
    /// is seen from a clock that is far behind, and is all put into one bucket, to be inserted again.
    fn wind(&mut self, now: u64);

    /// Unlinks the value that was last reported at `location`, if it is still linked and `wanted`.
    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V>;

    /// The value that was last reported at `location`, if it is still linked, and the deadline under which it is. If it is not: `None`, or
    /// another value.
    fn get(&self, location: Location) -> Option<(u64, &V)>;

    /// Takes out what was due when it came in. `out` must be empty.
    fn take_overdue(&mut self, out: &mut Vec<Place<V>>);

    /// A step towards `now`: takes out some of what is due by then, perhaps nothing, and moves the clock. `false` if nothing else is, and
    /// the clock is at `now`, or beyond if it was. `out` must be empty. What is inserted meanwhile and is due by the clock is overdue.
    fn take_next(&mut self, now: u64, out: &mut Vec<Place<V>>) -> bool;

    /// Whether a further [`take_next`](Self::take_next) would tidy something, when all that is due has been taken.
    fn is_untidy(&self) -> bool {
        false
    }

    /// Arrays to be freed by the owner, for which that may take milliseconds: without a lock.
    fn take_emptied(&mut self) -> Vec<Vec<Place<V>>> {
        Vec::new()
    }

    /// How many values were carried to a finer level since it was last asked.
    fn take_carried(&mut self) -> u64 {
        0
    }

    /// A tick not beyond the earliest deadline; that deadline itself unless a removal has made the cached minimum stale. `now()` while
    /// values are being carried down. `None` exactly when nothing but the overdue is linked.
    fn earliest(&self) -> Option<u64>;

    /// Some tick beyond `now()` and not beyond the earliest deadline. With something overdue, the next tick. `None` exactly
    /// when empty.
    fn next_expiry(&self) -> Option<u64> {
        let next = self.now().saturating_add(1);
        if self.has_overdue() { Some(next) } else { self.earliest().map(|earliest| earliest.max(next)) }
    }

    /// Whether something was due when it came in and has not been taken.
    fn has_overdue(&self) -> bool;

    /// The tick up to which everything was handed out.
    fn now(&self) -> u64;

    /// How many values are linked.
    fn len(&self) -> usize;

    /// Moves everything to the end of `out`, due or not, in no particular order, and frees the memory. The clock stays.
    fn drain(&mut self, out: &mut Vec<Entry<V>>);

    /// What is told of the values' locations.
    fn tracker(&self) -> &Self::Tracker;

    /// What is told of the values' locations.
    fn tracker_mut(&mut self) -> &mut Self::Tracker;
}
