//! A chunk of slots, and a word with the marks of those that have values.

use std::mem;

/// The number of slots in a chunk, which takes 1 KiB. Tests use short chunks, so that few values
/// make a long bucket.
pub(crate) const CHUNK: usize = if cfg!(test) { 16 } else { 64 };

/// The number of chunks that a step of a wheel reads.
pub(in crate::wheel) const CHUNKS_PER_STEP: usize = if cfg!(test) { 1 } else { 4 };

/// An empty bucket keeps room for this many values, so that a lone timeout does not allocate each
/// time.
pub(in crate::wheel) const MIN_CAPACITY: usize = 4;

/// A removal that leaves at most this many values in a chunk is followed by upkeep, unless
/// insertions fill that chunk and there are others.
pub(super) const MIN_UPKEEP: usize = 8;

/// A value and the tick at which it is due.
pub(crate) type Dated<V> = (u64, V);

/// One element of a chunk. A slot without a mark is vacant, whatever is in it.
pub(in crate::wheel) type Slot<V> = (u64, Option<V>);

/// An array of at most [`CHUNK`] slots.
pub(crate) struct Chunk<V> {
    slots: Box<[Slot<V>]>,
    /// Bit n: slot n has a value.
    occupied: u64,
    /// The number of values.
    pub(super) len: u16,
    /// A removal that leaves fewer values than this is followed by upkeep.
    pub(super) upkeep_below: u16,
}

/// Iterates over the slots that have marks.
struct Marked(u64);

impl Iterator for Marked {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let at = self.0.trailing_zeros() as usize;
        let is_marked = self.0 != 0;
        self.0 &= self.0.wrapping_sub(1);
        is_marked.then_some(at)
    }
}

/// Removes the values whose deadlines are `chosen`. Calls `fetch` with each of them, and then
/// `each`. Returns the earliest deadline of the others, or `u64::MAX` if there are none.
#[inline]
pub(super) fn extract<V>(
    slots: &mut [Slot<V>],
    marks: &mut u64,
    chosen: impl Fn(u64) -> bool,
    fetch: impl Fn(&V),
    mut each: impl FnMut(Dated<V>),
) -> u64 {
    let mut chosen_marks = 0;
    let mut earliest = u64::MAX;
    for (at, (deadline, _)) in slots.iter().enumerate() {
        // No branch, because vacant slots are at random places.
        let is_chosen = chosen(*deadline);
        let is_left = *marks >> (at % CHUNK) & 1 == 1 && !is_chosen;
        chosen_marks |= u64::from(is_chosen) << (at % CHUNK);
        earliest = earliest.min(if is_left { *deadline } else { u64::MAX });
    }
    chosen_marks &= *marks;
    *marks &= !chosen_marks;
    Marked(chosen_marks).filter_map(|at| slots.get(at)?.1.as_ref()).for_each(fetch);
    for at in Marked(chosen_marks) {
        let Some((deadline, value)) = slots.get_mut(at) else { break };
        if let Some(value) = value.take() {
            each((*deadline, value));
        }
    }
    earliest
}

/// Clears the mark of the slot `at`. Returns `false` if there is none, or if `may` returns `false`,
/// which is called only if there is one.
#[inline]
pub(super) fn vacate(marks: &mut u64, at: usize, may: impl FnOnce() -> bool) -> bool {
    let mark = 1 << (at % CHUNK);
    if *marks & mark == 0 || !may() {
        return false;
    }
    *marks &= !mark;
    true
}

impl<V> Chunk<V> {
    /// Returns the chunk of a table, with its full number of slots or none.
    pub(super) fn new(slots: Box<[Slot<V>]>, occupied: u64) -> Self {
        let mut chunk = Chunk { slots, occupied, len: occupied.count_ones() as u16, upkeep_below: 0 };
        chunk.set_upkeep();
        chunk
    }

    pub(super) fn into_parts(self) -> (Box<[Slot<V>]>, u64) {
        (self.slots, self.occupied)
    }

    /// Returns the number of slots.
    #[inline]
    pub(in crate::wheel) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Exchanges the slots for `capacity` of them, at least as many. Returns the former array,
    /// which has no values.
    pub(super) fn lengthen(&mut self, capacity: usize) -> Vec<Slot<V>> {
        let mut longer = Vec::with_capacity(capacity);
        let mut former = mem::take(&mut self.slots).into_vec();
        longer.append(&mut former);
        longer.resize_with(capacity, || (0, None));
        self.slots = longer.into_boxed_slice();
        former
    }

    /// Gives up the slots, which have no values.
    pub(in crate::wheel) fn take_slots(&mut self) -> Vec<Slot<V>> {
        mem::take(&mut self.slots).into_vec()
    }

    /// Returns the first vacant slot, or a number of no slot.
    #[inline]
    pub(super) fn vacant(&self) -> usize {
        self.occupied.trailing_ones() as usize
    }

    /// Inserts a value into the slot `at`, which must be there and vacant.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, (deadline, value): Dated<V>) {
        self.occupied |= 1 << (at % CHUNK);
        self.len += 1;
        // The slot is vacant, so there is nothing to drop.
        mem::forget(mem::replace(&mut self.slots[at], (deadline, Some(value))));
    }

    /// Returns `true` if the slot has a value.
    #[inline]
    fn is_occupied(&self, at: usize) -> bool {
        self.occupied >> (at % CHUNK) & 1 == 1
    }

    /// Returns the value of a slot, and its deadline.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<(u64, &V)> {
        let (deadline, value) = self.slots.get(at).filter(|_| self.is_occupied(at))?;
        Some((*deadline, value.as_ref()?))
    }

    /// Removes the value at `at` if there is one and it is `wanted`.
    #[inline]
    pub(super) fn remove(&mut self, at: usize, wanted: impl FnOnce(&V) -> bool) -> Option<Dated<V>> {
        if !self.is_occupied(at) {
            return None;
        }
        let slot = self.slots.get_mut(at)?;
        let value = slot.1.take_if(|value| wanted(value))?;
        self.len -= 1;
        vacate(&mut self.occupied, at, || true);
        Some((slot.0, value))
    }

    /// Removes the value at `at` without reading its slot, as [`vacate`] does.
    #[inline]
    pub(super) fn vacate(&mut self, at: usize, may: impl FnOnce() -> bool) -> bool {
        let is_vacated = vacate(&mut self.occupied, at, may);
        self.len -= u16::from(is_vacated);
        is_vacated
    }

    /// Takes the first value.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<Dated<V>> {
        let at = self.occupied.trailing_zeros() as usize;
        let slot = self.slots.get_mut(at)?;
        self.occupied &= self.occupied - 1;
        self.len -= 1;
        Some((slot.0, slot.1.take()?))
    }

    /// Returns the values and their deadlines.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.part(0).iter()
    }

    /// Returns `true` if there are no values.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Returns the slots from `at` on.
    pub(super) fn part(&self, at: usize) -> Part<'_, V> {
        let slots = self.slots.get(at..).unwrap_or_default();
        Part::new(slots, if slots.is_empty() { 0 } else { self.occupied >> at })
    }

    /// Takes out all values.
    #[inline]
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Dated<V>> {
        let slots = &mut self.slots;
        self.len = 0;
        Marked(mem::take(&mut self.occupied)).filter_map(|at| {
            let slot = slots.get_mut(at)?;
            Some((slot.0, slot.1.take()?))
        })
    }

    /// Returns all values. The iterator frees the memory.
    pub(super) fn into_values(self) -> impl Iterator<Item = Dated<V>> {
        let slots = self.slots.into_vec().into_iter().enumerate();
        slots.filter_map(move |(at, (deadline, value))| {
            let is_occupied = self.occupied >> at & 1 == 1;
            Some((deadline, value.filter(|_| is_occupied)?))
        })
    }

    /// Does the same as [`extract`] for this chunk. Returns the earliest deadline and the number of
    /// values that are left.
    #[inline]
    pub(super) fn extract(
        &mut self,
        chosen: impl Fn(u64) -> bool,
        fetch: impl Fn(&V),
        each: impl FnMut(Dated<V>),
    ) -> (u64, usize) {
        let earliest = extract(&mut self.slots, &mut self.occupied, chosen, fetch, each);
        self.len = self.occupied.count_ones() as u16;
        (earliest, usize::from(self.len))
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        if mem::needs_drop::<V>() {
            self.drain().for_each(drop);
        }
        self.occupied = 0;
        self.len = 0;
    }

    /// Returns `true` if a removal should be followed by upkeep.
    #[inline]
    pub(super) fn needs_upkeep(&self) -> bool {
        self.len < self.upkeep_below
    }

    /// Returns `true` if fewer than a quarter of the slots have values.
    pub(super) fn is_sparse(&self) -> bool {
        4 * usize::from(self.len) < self.capacity()
    }

    /// Returns `true` if the chunk has no memory, so that it is a gap in the positions.
    pub(super) fn is_gap(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn set_upkeep(&mut self) {
        self.upkeep_below = (self.capacity() / 4).max(MIN_UPKEEP + 1) as u16;
    }
}

impl<V> Default for Chunk<V> {
    fn default() -> Self {
        Chunk { slots: Box::default(), occupied: 0, len: 0, upkeep_below: MIN_UPKEEP as u16 + 1 }
    }
}

/// Some consecutive slots of a chunk.
pub(crate) struct Part<'a, V> {
    slots: &'a [Slot<V>],
    /// Bit n: slot n has a value.
    occupied: u64,
}

impl<'a, V> Part<'a, V> {
    pub(super) fn new(slots: &'a [Slot<V>], occupied: u64) -> Self {
        Part { slots, occupied }
    }

    /// Returns the number of slots, of which some may be vacant.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<(u64, &'a V)> {
        let (deadline, value) = self.slots.get(at).filter(|_| self.occupied >> at & 1 == 1)?;
        Some((*deadline, value.as_ref()?))
    }

    /// Returns `true` if all values are due by `now`.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let late = |marks, (at, (deadline, _)): (usize, &Slot<V>)| marks | u64::from(*deadline > now) << (at % CHUNK);
        self.slots.iter().enumerate().fold(0, late) & self.occupied == 0
    }

    /// Divides the slots into groups of `size`. The last one may be shorter.
    pub(crate) fn groups(&self, size: usize) -> impl Iterator<Item = Part<'a, V>> + use<'a, V> {
        let occupied = self.occupied;
        self.slots.chunks(size).enumerate().map(move |(nth, slots)| {
            let occupied = occupied >> (nth * size) & (u64::MAX >> (64 - slots.len()));
            Part { slots, occupied }
        })
    }

    /// Returns the values and their deadlines.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &'a V)> + use<'a, V> {
        let slots = self.slots;
        Marked(self.occupied).filter_map(move |at| {
            let (deadline, value) = slots.get(at)?;
            Some((*deadline, value.as_ref()?))
        })
    }
}
