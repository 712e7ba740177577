//! What both wheels can do below the keys: values are linked at spots, and found again by them.
//!
//! A raw wheel owns its [`Places`] and reports to it every change of a value's [`Spot`]. It never looks into a value.
//! It keeps no table of its own, so an owner whose values remember their spots pays for nothing else.
//!
//! The owner sees to it that fewer than 2^32 values are linked at a time. It is not told that a value leaves, so a spot that
//! it names may be out of date: it says which value it wants there.

use super::bucket::Entry;
use super::spot::{Places, Spot};

/// A timing wheel whose values are addressed by their spots.
pub(crate) trait RawWheel<V> {
    /// Who is told of the values' places.
    type Places: Places<V>;

    /// Links `value` to be due at `deadline`; its spot is reported. A deadline up to `now()` is overdue at once.
    fn insert(&mut self, deadline: u64, value: V);

    /// Unlinks the value at `spot`, if there is one and it is `wanted`.
    fn remove(&mut self, spot: Spot, wanted: impl FnOnce(&V) -> bool) -> Option<V>;

    /// The value at `spot` and the deadline under which it is linked; `None` if there is nothing.
    fn get(&self, spot: Spot) -> Option<(u64, &V)>;

    /// Moves what was due when it came in to the end of `due`.
    fn take_overdue(&mut self, due: &mut Vec<Entry<V>>);

    /// Moves what is due by `now` in the first bucket that has something to the end of `due`, and the clock at least as far,
    /// but not beyond `now` unless it is there already. `false` if nothing was left; then the clock is at `now`.
    ///
    /// So the owner may stop between two buckets. Whatever it puts back by `insert` is overdue.
    fn take_due(&mut self, now: u64, due: &mut Vec<Entry<V>>) -> bool;

    /// Some tick beyond `now()` and not beyond the earliest deadline; that deadline itself unless a removal has made
    /// the cached minimum stale. With something overdue, the next tick. `None` exactly when empty.
    fn next_expiry(&self) -> Option<u64>;

    /// Whether something is due that was not taken, be it that it was due when it came in or that the owner has stopped.
    fn has_overdue(&self) -> bool;

    /// The tick up to which everything was handed out.
    fn now(&self) -> u64;

    /// How many values are linked.
    fn len(&self) -> usize;

    /// Moves everything to the end of `out`, due or not, in no particular order, and frees the memory. The clock stays.
    fn drain(&mut self, out: &mut Vec<Entry<V>>);

    /// How many times a value was carried to a finer level so far.
    fn cascaded(&self) -> u64;

    /// Who is told of the values' places.
    fn places(&self) -> &Self::Places;

    /// Who is told of the values' places.
    fn places_mut(&mut self) -> &mut Self::Places;
}
