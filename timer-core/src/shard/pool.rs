//! The shards of the process. They are leased to timers in blocks and never freed.
//!
//! A shard is named by its index and a generation ([`ShardId`]). The generation grows by one
//! whenever a lease ends. A thread that still holds an old name, such as a canceller that was
//! preempted between its win and the shard's lock, finds another generation under the lock and does
//! nothing. Because shards are never freed, a name alone is enough to find one, without a reference
//! count.
//!
//! The number of shards in a block is a power of two and never changes.
//!
//! - *Generations run out*: after 65,535 leases a block is retired, so no name is ever used twice.
//! - *Indices run out* ([`INDICES`]): a timer gets a smaller block if there is one. Otherwise its
//!   [`Block`] is empty and the timer refuses everything.

use super::Shard;
use crate::config::WheelKind;
use crate::entry::ShardId;
use crate::sync::{Arc, Mutex, OnceRef, current_cpu};
use crate::timer_context::TimerContext;

/// The number of shards that a process can have.
#[cfg(not(all(test, timer_loom)))]
const INDICES: usize = 1 << 16;
#[cfg(all(test, timer_loom))]
const INDICES: usize = 4;

/// The generation that no lease has.
const LAST_GENERATION: u16 = u16::MAX;

/// All shards by index, and the blocks that are free.
pub(crate) struct Pool {
    shards: &'static [OnceRef<Shard>],
    free: Mutex<Free>,
}

struct Free {
    /// The first indices of the free blocks of 2^k shards, by k.
    blocks: [Vec<u16>; 17],
    /// The first index that was never used.
    unused: usize,
}

impl Free {
    /// No block is free, and no index was used.
    const NONE: Self = Free { blocks: [const { Vec::new() }; 17], unused: 0 };
}

/// The shards of the process. The table is zero at first, so it takes neither room in the program's
/// file nor memory for the parts that are not used.
#[cfg(not(all(test, timer_loom)))]
static SHARDS: [OnceRef<Shard>; INDICES] = [const { OnceRef::new() }; INDICES];

#[cfg(not(all(test, timer_loom)))]
static POOL: Pool = Pool { shards: &SHARDS, free: Mutex::new(Free::NONE) };

/// Returns the shard with this name, which may have been leased to another timer since.
#[cfg(not(all(test, timer_loom)))]
#[inline]
pub(crate) fn shard_of(id: ShardId) -> &'static Shard {
    shard_at(&SHARDS, id.index)
}

#[cfg(all(test, timer_loom))]
crate::sync::lazy_static! {
    static ref POOL: Pool = {
        let shards = Box::leak(Box::new([const { OnceRef::new() }; INDICES]));
        Pool { shards, free: Mutex::new(Free::NONE) }
    };
}

/// Returns the pool of the process, or of the execution of a model.
pub(crate) fn pool() -> &'static Pool {
    &POOL
}

/// Returns the shard with this name, which may have been leased to another timer since.
#[cfg(all(test, timer_loom))]
pub(crate) fn shard_of(id: ShardId) -> &'static Shard {
    shard_at(POOL.shards, id.index)
}

#[inline]
fn shard_at(shards: &[OnceRef<Shard>], index: u16) -> &'static Shard {
    // One timer at a time leases an index, so no two threads make the shard of an index at once.
    shards[usize::from(index)].get_or_init(|| Shard::leak(index))
}

impl Pool {
    /// Leases a block of `shards` shards, rounded up to a power of two. Leases a smaller block if
    /// there is none of that size, and an empty one if there is none at all.
    pub(crate) fn lease(&'static self, shards: usize) -> Block {
        let largest = shards.clamp(1, INDICES / 2).next_power_of_two().ilog2() as usize;
        let found = (0..=largest).rev().find_map(|order| self.take(order).map(|first| (first, order)));
        let Some((first, order)) = found else { return Block { pool: self, id: None, shards: Box::default() } };
        let range = usize::from(first)..usize::from(first) + (1 << order);
        let shards: Box<[_]> = range.map(|index| shard_at(self.shards, index as u16)).collect();
        let generation = shards[0].id().generation;
        Block { pool: self, id: Some(BlockId { first, generation, mask: (1 << order) - 1 }), shards }
    }

    fn take(&self, order: usize) -> Option<u16> {
        let mut free = self.free.lock();
        if let Some(first) = free.blocks[order].pop() {
            return Some(first);
        }
        let first = free.unused;
        if first + (1 << order) > self.shards.len() {
            return None;
        }
        free.unused += 1 << order;
        u16::try_from(first).ok()
    }
}

/// A block of shards that serves one timer until it is dropped.
pub(crate) struct Block {
    pool: &'static Pool,
    /// The name during this lease. It is `None` if the block has no shards.
    pub(crate) id: Option<BlockId>,
    /// The shards, whose number is a power of two or zero.
    pub(crate) shards: Box<[&'static Shard]>,
}

impl Block {
    /// Lets every shard serve the timer of `context` from now on.
    pub(crate) fn open(&self, context: &Arc<TimerContext>, wheel: WheelKind) {
        self.shards.iter().for_each(|shard| shard.open(context, wheel));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        // All shards of a block have the same generation, because they are leased together.
        let next = self.shards.iter().map(|shard| shard.vacate()).max();
        if next != Some(LAST_GENERATION) {
            self.pool.free.lock().blocks[self.shards.len().ilog2() as usize].push(id.first);
        }
    }
}

/// The name of a block during one lease. It lets a future find the shards of its timer without
/// keeping the timer alive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockId {
    /// The index of the first shard, which no other living block has.
    pub(crate) first: u16,
    generation: u16,
    /// One less than the number of shards.
    mask: u16,
}

impl BlockId {
    /// Returns the shard for the calling thread, and the name that it has while the lease lasts.
    #[inline]
    pub(crate) fn local_shard(self) -> (&'static Shard, ShardId) {
        let index = self.first + (current_cpu() as u16 & self.mask);
        let id = ShardId { index, generation: self.generation };
        (shard_of(id), id)
    }

    /// Returns `true` if the shard with this name belongs to the block during the same lease.
    pub(crate) fn contains(self, id: ShardId) -> bool {
        id.generation == self.generation && id.index.wrapping_sub(self.first) <= self.mask
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::clock::Present;
    use crate::config::Config;
    use crate::resolution::Resolution;

    /// The pools of the tests. A pool that nothing points to would be reported as a leak.
    static POOLS: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());

    fn pool_of(indices: usize) -> &'static Pool {
        let shards = Box::leak(Box::new([const { OnceRef::new() }; 8]));
        let pool = Pool { shards: &shards[..indices], free: Mutex::new(Free::NONE) };
        let pool: &'static Pool = Box::leak(Box::new(pool));
        POOLS.lock().push(pool);
        pool
    }

    fn open(block: &Block) {
        let context = Arc::new(TimerContext::new(&Config::default(), Present::real(), Resolution::Exact(0)));
        block.open(&context, WheelKind::Hierarchical);
    }

    fn names(block: &Block) -> Vec<ShardId> {
        block.shards.iter().map(|shard| shard.id()).collect()
    }

    #[test]
    fn a_block_is_used_again_under_another_name() {
        let pool = pool_of(8);
        let mut before = Vec::new();
        for _ in 0..3 {
            let block = pool.lease(3);
            open(&block);
            let names = names(&block);
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
        assert_eq!(sizes.iter().map(|block| block.shards.len()).collect::<Vec<_>>(), [4, 2, 1, 0, 0]);
        drop(sizes);
        assert_eq!(pool.lease(4).shards.len(), 4, "given back");
    }

    #[test]
    fn a_block_keeps_its_size() {
        let pool = pool_of(8);
        drop(pool.lease(8));
        assert!(pool.lease(1).shards.is_empty(), "the only block has eight shards");
        assert_eq!(pool.lease(8).shards.len(), 8);
    }

    #[test]
    fn a_block_of_the_last_generation_is_retired() {
        let pool = pool_of(2);
        for _ in 0..LAST_GENERATION {
            let block = pool.lease(1);
            open(&block);
            assert_eq!(block.shards[0].id().index, 0);
        }
        assert_eq!(pool.lease(1).shards[0].id().index, 1, "the next block");
    }
}
