//! What a case does to a wheel.

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The deadline, from now on.
    Insert(u64),
    /// The first deadline, from now on; so many ticks between two; how many.
    InsertMany(u64, u64, u8),
    /// The deadline, so much before now.
    InsertOverdue(u64),
    /// The deadline, wherever now is.
    InsertAt(u64),
    /// The deadline: so much before or after the next multiple of 2^k, where a slot ends.
    InsertAtEdge(u32, i8),
    Remove(usize),
    RemoveEarliest,
    RemoveStale(usize),
    Advance(u64),
    AdvanceBack(u64),
    /// To so much before or after the next multiple of 2^k.
    AdvanceToEdge(u32, i8),
    /// To so much before or after the next expiry.
    AdvanceToNext(i8),
    /// The closure panics after so many values.
    AdvancePanicking(u64, usize),
}

/// How many slots a hashed wheel may have: none but one, a few, the default, more than one page.
pub(crate) const SLOTS: [usize; 5] = [1, 2, 8, 512, 1 << 20];
