//! Cases made of bytes, which a fuzzer or proptest chooses. Any bytes are a case, which ends when
//! they are used up. Deadlines and uptimes are mostly beside the boundaries of levels and rounds.
//!
//! Each choice takes as few bytes as it needs, so that a changed byte changes one operation and not
//! the whole case.

use super::{model, ops};
use arbitrary::{Result, Unstructured};
use timer_core::wheel::{HashedWheel, HierarchicalWheel};

pub(crate) use ops::Op;

/// The case that `data` encodes.
#[derive(Debug)]
pub(crate) struct Case {
    slots: usize,
    uptime: u64,
    removals: bool,
    pub(crate) ops: Vec<Op>,
}

impl Case {
    pub(crate) fn hashed(data: &[u8]) -> Result<Self> {
        let mut bytes = Unstructured::new(data);
        let slots = *bytes.choose(&ops::SLOTS)?;
        Self::with(slots, bytes)
    }

    pub(crate) fn hierarchical(data: &[u8]) -> Result<Self> {
        Self::with(0, Unstructured::new(data))
    }

    fn with(slots: usize, mut bytes: Unstructured<'_>) -> Result<Self> {
        let bytes = &mut bytes;
        // Many removals turn `next_deadline` into a bound, so cases without removals test it most
        // strictly.
        let uptime = uptime(bytes)?;
        let removals = bytes.ratio(2, 3)?;
        let mut ops = Vec::new();
        while !bytes.is_empty() {
            ops.push(op(bytes)?);
        }
        Ok(Self { slots, uptime, removals, ops })
    }

    pub(crate) fn run_hashed(&self) {
        model::run(HashedWheel::new(self.slots), self.uptime, self.removals, &self.ops);
    }

    pub(crate) fn run_hierarchical(&self) {
        model::run(HierarchicalWheel::new(), self.uptime, self.removals, &self.ops);
    }
}

fn op(bytes: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match bytes.int_in_range(0u8..=29)? {
        0..=8 => Op::Insert(edge(bytes)?),
        9 => Op::InsertMany(edge(bytes)?, bytes.int_in_range(0..=40)?, bytes.arbitrary()?),
        10 => Op::InsertOverdue(bytes.int_in_range(0..=2)?),
        11 => Op::InsertAt(edge(bytes)?),
        12..=13 => Op::InsertAtEdge(bytes.int_in_range(0..=63)?, offset(bytes)?),
        14..=17 => Op::Remove(index(bytes)?),
        18 => Op::RemoveEarliest,
        19 => Op::RemoveStale(index(bytes)?),
        20..=22 => Op::Advance(jump(bytes)?),
        23 => Op::AdvanceBack(edge(bytes)?),
        24..=25 => Op::AdvanceToEdge(bytes.int_in_range(0..=49)?, offset(bytes)?),
        26..=28 => Op::AdvanceToNext(offset(bytes)?),
        _ => Op::AdvancePanicking(jump(bytes)?, bytes.int_in_range(0..=4)?),
    })
}

fn offset(bytes: &mut Unstructured<'_>) -> Result<i8> {
    bytes.int_in_range(-1..=1)
}

/// Draws a number that fits into a byte.
fn index(bytes: &mut Unstructured<'_>) -> Result<usize> {
    Ok(bytes.arbitrary::<u8>()?.into())
}

/// Draws 2^k or a neighbor.
fn power(bytes: &mut Unstructured<'_>, most: u32) -> Result<u64> {
    let power = 1u64 << bytes.int_in_range(0..=most)?;
    Ok(power.wrapping_add_signed(offset(bytes)?.into()))
}

fn edge(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.int_in_range(0u8..=12)? {
        0..=3 => power(bytes, 48)?,
        4..=5 => {
            let level = bytes.int_in_range(0u32..=7)?;
            let slots = bytes.int_in_range(1u64..=299)?;
            (slots << (level * 6)).wrapping_add_signed(offset(bytes)?.into())
        }
        6..=8 => bytes.int_in_range(0..=19)?,
        9..=10 => bytes.int_in_range(0..=4999)?,
        11 => u64::MAX - bytes.int_in_range(0..=2)?,
        _ => bytes.arbitrary()?,
    })
}

/// Draws a jump that leaves some of the range of u64.
fn jump(bytes: &mut Unstructured<'_>) -> Result<u64> {
    match bytes.int_in_range(0u8..=11)? {
        0..=5 => bytes.int_in_range(0..=69),
        6..=9 => power(bytes, 16),
        _ => power(bytes, 48),
    }
}

fn uptime(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.int_in_range(0u8..=8)? {
        0 => 0,
        1..=6 => (1u64 << bytes.int_in_range(0..=63)?).wrapping_sub(bytes.int_in_range(0..=69)?),
        7 => u64::MAX - bytes.int_in_range(0..=69)?,
        _ => bytes.arbitrary()?,
    })
}
