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
//! step does a bounded amount of work, in [`RawWheel::take_overdue`] and [`RawWheel::take_next`].

use super::discarded::Discarded;
use super::location::{Location, Tracker};
use super::slots::{Entry, Slots};

/// A timing wheel whose values are addressed by their locations.
pub(crate) trait RawWheel<V> {
    /// The receiver of the values' locations.
    type Tracker: Tracker<V>;

    /// Inserts `value`, to be due at `deadline`, and reports its location. A deadline up to `now()`
    /// is overdue at once.
    fn insert(&mut self, deadline: u64, value: V);

    /// Moves the clock of an empty wheel to `now`, or does a step of upkeep if much of it is left.
    /// The owner calls this before it inserts into an empty wheel. Otherwise, after a long time
    /// without any value, the clock would be far behind, and new values would all be put into one
    /// coarse bucket.
    fn fast_forward(&mut self, now: u64);

    /// Removes the value that was last reported at `location`, if it is still in the wheel and is
    /// `wanted`.
    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V>;

    /// Returns the value that was last reported at `location`, and its deadline. If that value has
    /// left the wheel, returns `None` or another value.
    fn get(&self, location: Location) -> Option<(u64, &V)>;

    /// Takes out the values that were due when they were inserted. `due` must be empty.
    fn take_overdue(&mut self, due: &mut Slots<V>);

    /// Takes a step towards `now`, which moves the clock and takes out some of the values that are
    /// due, perhaps none. Returns `false` once nothing else is due by `now`. The clock is never
    /// moved back. `due` must be empty. A value that is inserted between two steps and is due by
    /// the clock is overdue.
    fn take_next(&mut self, now: u64, due: &mut Slots<V>) -> bool;

    /// Returns `true` if a further [`take_next`](Self::take_next) would do some upkeep, even if
    /// nothing is due.
    fn has_upkeep(&self) -> bool;

    /// Returns the memory that the wheel has given up.
    fn discarded(&mut self) -> &mut Discarded<V>;

    /// Takes out the memory that the wheel has given up. An owner who holds a lock calls this
    /// before it leaves the lock and frees the memory afterwards.
    fn take_discarded(&mut self) -> Discarded<V> {
        std::mem::replace(self.discarded(), Discarded::new())
    }

    /// Returns the number of values that cascaded to a finer level since the last call.
    fn take_cascaded(&mut self) -> u64 {
        0
    }

    /// Returns a tick not after the earliest deadline. It may be earlier if the earliest value was
    /// removed, and it is at most `now()` while a cascade is being scanned. Returns `None` exactly
    /// if the wheel has no values but overdue ones.
    fn earliest(&self) -> Option<u64>;

    /// Returns a tick after `now()` and not after the earliest deadline, or the next tick if a
    /// value is overdue. Returns `None` exactly if the wheel is empty.
    fn next_expiry(&self) -> Option<u64> {
        let next = self.now().saturating_add(1);
        if self.has_overdue() { Some(next) } else { self.earliest().map(|earliest| earliest.max(next)) }
    }

    /// Returns `true` if values that were due when they were inserted have not been taken.
    fn has_overdue(&self) -> bool;

    /// Returns the time of the clock. Values that are due by then may still have to be taken out.
    fn now(&self) -> u64;

    /// Returns the number of values in the wheel.
    fn len(&self) -> usize;

    /// Removes all values and returns them with their deadlines, in no particular order. The
    /// iterator frees the memory. The clock stays.
    fn drain(&mut self) -> impl Iterator<Item = Entry<V>>;

    fn tracker(&self) -> &Self::Tracker;

    fn tracker_mut(&mut self) -> &mut Self::Tracker;
}
