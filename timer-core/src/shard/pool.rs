//! The shards of the process: leased to timers in blocks, recycled, never freed.
//!
//! A shard is named by its index and a generation ([`ShardId`]). The generation goes up by one each time that a lease ends, so
//! what still bears an old name (a canceller that was preempted between its win and the shard's lock) meets another
//! generation under the lock and lets it be. Since shards are never freed, the name alone finds one, without a count.
//!
//! A lease has 2^k shards. *When generations run out*: after 65,535 leases a block is retired and not used again, so no name is ever
//! used twice. *When indices run out* ([`INDICES`]): a free block that is larger is split, for good; a timer gets fewer shards, as
//! many as there are; with none left, its [`Lease`] is empty and it refuses everything.

use super::{Serving, Shard};
use crate::config::SpreadBy;
use crate::entry::ShardId;
use crate::sync::{Mutex, OnceLock};
use std::iter;

/// How many shards there can be.
#[cfg(not(all(test, timer_loom)))]
const INDICES: usize = 1 << 16;
#[cfg(all(test, timer_loom))]
const INDICES: usize = 4;

/// The generation that no lease has.
const LAST_GENERATION: u16 = u16::MAX;

/// All shards, by index, and which of them are free.
pub(crate) struct Pool {
    shards: &'static [Page],
    /// The number of shards that may be leased.
    indices: usize,
    free: Mutex<Free>,
}

struct Free {
    /// First indices of free blocks of 2^k shards, by k.
    blocks: [Vec<u16>; 17],
    /// The first index never used.
    fresh: usize,
}

/// The number of shards on a page.
const PAGE: usize = 256;

/// A part of the table of shards. It is allocated when one of its shards is first leased, because a table of all indices would
/// add 1 MiB to the data of every program.
type Page = OnceLock<Box<[OnceLock<&'static Shard>]>>;

/// The shards of the process.
#[cfg(not(all(test, timer_loom)))]
static SHARDS: [Page; INDICES / PAGE] = [const { Page::new() }; INDICES / PAGE];

/// The pool of the process.
#[cfg(not(all(test, timer_loom)))]
pub(crate) fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(&SHARDS, INDICES))
}

/// The shard of this name, which may serve another timer by now.
#[cfg(not(all(test, timer_loom)))]
#[inline]
pub(crate) fn shard_of(id: ShardId) -> &'static Shard {
    shard_at(&SHARDS, id.index)
}

#[cfg(all(test, timer_loom))]
crate::sync::lazy_static! {
    static ref POOL: Pool = Pool::new(Box::leak(Box::new([Page::new()])), INDICES);
}

/// The pool of the execution.
#[cfg(all(test, timer_loom))]
pub(crate) fn pool() -> &'static Pool {
    &POOL
}

/// The shard of this name, which may serve another timer by now.
#[cfg(all(test, timer_loom))]
pub(crate) fn shard_of(id: ShardId) -> &'static Shard {
    shard_at(POOL.shards, id.index)
}

#[inline]
fn shard_at(shards: &[Page], index: u16) -> &'static Shard {
    let at = usize::from(index);
    let page = shards[at / PAGE].get_or_init(|| iter::repeat_with(OnceLock::new).take(PAGE).collect());
    page[at % PAGE].get_or_init(|| Shard::leak(index))
}

impl Pool {
    fn new(shards: &'static [Page], indices: usize) -> Self {
        let free = Free { blocks: [const { Vec::new() }; 17], fresh: 0 };
        Self { shards, indices, free: Mutex::new(free) }
    }

    /// A block of `shards` shards, rounded up to a power of two, or of as many as there are.
    pub(crate) fn lease(&'static self, shards: usize) -> Lease {
        let most = shards.clamp(1, INDICES / 2).next_power_of_two().ilog2() as usize;
        let first = (0..=most).rev().find_map(|order| self.take(order).map(|first| (first, order)));
        let Some((first, order)) = first else { return Lease { pool: self, order: 0, shards: Box::default() } };
        let range = usize::from(first)..usize::from(first) + (1 << order);
        let shards = range.map(|index| shard_at(self.shards, index as u16));
        Lease { pool: self, order, shards: shards.collect() }
    }

    fn take(&self, order: usize) -> Option<u16> {
        let mut free = self.free.lock();
        if let Some(first) = free.blocks[order].pop() {
            return Some(first);
        }
        let first = free.fresh;
        if first + (1 << order) > self.indices {
            return free.split(order);
        }
        free.fresh += 1 << order;
        u16::try_from(first).ok()
    }
}

impl Free {
    /// A part of a larger block, for good: what is leased by itself has a generation of its own.
    fn split(&mut self, order: usize) -> Option<u16> {
        let larger = (order + 1..self.blocks.len()).find(|&larger| !self.blocks[larger].is_empty())?;
        let first = self.blocks[larger].pop()?;
        (order..larger).for_each(|half| self.blocks[half].push(first + (1 << half)));
        Some(first)
    }
}

/// A block of shards that serves one timer until this is dropped.
pub(crate) struct Lease {
    pool: &'static Pool,
    order: usize,
    shards: Box<[&'static Shard]>,
}

impl Lease {
    /// 2^k of them, or none.
    #[inline]
    pub(crate) fn shards(&self) -> &[&'static Shard] {
        &self.shards
    }

    /// Its name; `None` without any shard.
    pub(crate) fn id(&self, spread: SpreadBy) -> Option<LeaseId> {
        let ShardId { index: first, generation } = self.shards.first()?.id();
        Some(LeaseId { first, generation, order: self.order as u8, spread })
    }

    /// Every shard serves the same timer from now on.
    pub(crate) fn open(&self, serving: impl Fn() -> Serving) {
        self.shards.iter().for_each(|shard| shard.open(serving()));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(first) = self.shards.first() else { return };
        // All of a block have the same generation: they are leased together.
        let next = self.shards.iter().map(|shard| shard.vacate()).max();
        if next != Some(LAST_GENERATION) {
            self.pool.free.lock().blocks[self.order].push(first.index());
        }
    }
}

/// Names the shards of a lease, for what holds nothing of the timer. What is done with a shard found by it says of which generation the
/// timer is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseId {
    first: u16,
    generation: u16,
    order: u8,
    spread: SpreadBy,
}

impl LeaseId {
    /// The shard for the calling thread, and its name as long as it serves the timer.
    #[inline]
    pub(crate) fn local_shard(self) -> (&'static Shard, ShardId) {
        let offset = self.spread.number() & ((1 << self.order) - 1);
        let index = self.first + offset as u16;
        let id = ShardId { index, generation: self.generation };
        (shard_of(id), id)
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::backpressure::Backpressure;
    use crate::clock::Present;
    use crate::config::{MissedRuns, WheelKind};
    use crate::context::Context;
    use crate::resolution::Resolution;
    use crate::sync::Arc;

    /// The pools that were made: what nothing points to any more would be a leak.
    static POOLS: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());

    fn pool_of(indices: usize) -> &'static Pool {
        let pool = Pool::new(Box::leak(Box::new([Page::new()])), indices);
        let pool: &'static Pool = Box::leak(Box::new(pool));
        POOLS.lock().push(pool);
        pool
    }

    fn open(lease: &Lease) {
        let context = Context::new(
            "pool".into(),
            Present::real(),
            Resolution::Exact(0),
            MissedRuns::Skip,
            None,
            Backpressure::new(true),
        );
        let context = Arc::new(context);
        lease.open(|| Serving { context: context.clone(), wheel: WheelKind::Hierarchical });
    }

    fn names(lease: &Lease) -> Vec<ShardId> {
        lease.shards().iter().map(|shard| shard.id()).collect()
    }

    #[test]
    fn a_block_is_used_again_under_another_name() {
        let pool = pool_of(8);
        let mut before = Vec::new();
        for _ in 0..3 {
            let lease = pool.lease(3);
            open(&lease);
            let names = names(&lease);
            assert_eq!(names.len(), 4, "a power of two");
            assert!(names.iter().all(|name| !before.contains(name)));
            before.extend(names);
        }
        assert!(before.iter().all(|name| name.index < 4), "the same shards");
    }

    #[test]
    fn fewer_shards_when_indices_run_out() {
        let pool = pool_of(7);
        let sizes: Vec<_> = (0..5).map(|_| pool.lease(4)).collect();
        assert_eq!(sizes.iter().map(|lease| lease.shards().len()).collect::<Vec<_>>(), [4, 2, 1, 0, 0]);
        drop(sizes);
        assert_eq!(pool.lease(4).shards().len(), 4, "given back");
    }

    #[test]
    fn a_large_block_is_split_when_indices_run_out() {
        let pool = pool_of(8);
        drop(pool.lease(8));
        let leases: Vec<_> = (0..8).map(|_| pool.lease(1)).collect();
        let mut indices: Vec<_> = leases.iter().map(|lease| lease.shards()[0].index()).collect();
        indices.sort_unstable();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(pool.lease(1).shards().is_empty());
        drop(leases);
        assert_eq!(pool.lease(2).shards().len(), 1, "a block that was split stays so");
    }

    #[test]
    fn a_block_of_the_last_generation_is_retired() {
        let pool = pool_of(2);
        for _ in 0..LAST_GENERATION {
            let lease = pool.lease(1);
            open(&lease);
            assert_eq!(lease.shards()[0].index(), 0);
        }
        assert_eq!(pool.lease(1).shards()[0].index(), 1, "the next block");
    }
}
