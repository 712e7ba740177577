//! What both wheels can do below the keys: values are linked at spots, and found again by them.
//!
//! A raw wheel owns its [`Places`] and reports to it every change of a value's [`Spot`]. It never looks into a value.
//! It keeps no table of its own, so an owner whose values remember their spots pays for nothing else.
//!
//! The owner sees to it that fewer than 2^32 values are linked at a time, and that a spot it names is current.

use super::spot::{Places, Spot};

/// A timing wheel whose values are addressed by their spots.
pub(crate) trait RawWheel<V> {
    /// Who is told of the values' places.
    type Places: Places<V>;

    /// Links `value` to be due at `deadline`; its spot is reported. A deadline up to `now()` is overdue at once.
    fn insert(&mut self, deadline: u64, value: V);

    /// Unlinks the value at `spot`; `None` if there is nothing.
    fn remove(&mut self, spot: Spot) -> Option<V>;

    /// The deadline under which the value at `spot` is linked; `None` if there is nothing.
    fn deadline(&self, spot: Spot) -> Option<u64>;

    /// Moves the clock to `now`, unless it is there or beyond, and hands out everything that is due by then.
    ///
    /// Should `expired` panic, the values not yet handed out stay, and the next call goes on with them; the clock may
    /// be short of `now` then.
    fn advance(&mut self, now: u64, expired: impl FnMut(V));

    /// Some tick beyond `now()` and not beyond the earliest deadline; that deadline itself unless a removal has made
    /// the cached minimum stale. With something overdue, the next tick. `None` exactly when empty.
    fn next_expiry(&self) -> Option<u64>;

    /// Whether something is due already, which the next `advance` hands out whatever tick it is given.
    fn has_overdue(&self) -> bool;

    /// The tick up to which everything was handed out.
    fn now(&self) -> u64;

    /// How many values are linked.
    fn len(&self) -> usize;

    /// Takes everything out, due or not, in no particular order, and frees the memory. The clock stays.
    fn drain(&mut self, taken: impl FnMut(V));

    /// How many times a value was carried to a finer level so far.
    fn cascaded(&self) -> u64;

    /// Who is told of the values' places.
    fn places(&self) -> &Self::Places;

    /// Who is told of the values' places.
    fn places_mut(&mut self) -> &mut Self::Places;
}
