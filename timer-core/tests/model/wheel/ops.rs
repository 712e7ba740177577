//! The operations of a case.

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The deadline, counted from now.
    Insert(u64),
    /// The first deadline, counted from now, the ticks between two deadlines, and their number.
    InsertMany(u64, u64, u8),
    /// The ticks by which the deadline is before now.
    InsertOverdue(u64),
    /// An absolute deadline.
    InsertAt(u64),
    /// A deadline beside the next multiple of 2^k, where a slot ends, with the offset.
    InsertAtEdge(u32, i8),
    Remove(usize),
    RemoveEarliest,
    RemoveStale(usize),
    Advance(u64),
    AdvanceBack(u64),
    /// A jump to beside the next multiple of 2^k, with the offset.
    AdvanceToEdge(u32, i8),
    /// A jump to beside the next expiry, with the offset.
    AdvanceToNext(i8),
    /// The number of values after which the closure panics.
    AdvancePanicking(u64, usize),
}

/// Numbers of slots of a hashed wheel: one, a few, that of Netty, and more than a case fills.
pub(crate) const SLOTS: [usize; 5] = [1, 2, 8, 512, 1 << 20];
