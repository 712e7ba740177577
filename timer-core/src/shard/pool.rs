//! The shards of the process. They are leased to timers in blocks and never freed.
//!
//! A shard is named by its index and a generation ([`ShardId`]). The generation grows by one
//! whenever a lease ends. A thread that still holds an old name, such as a canceller that was
//! preempted between its win and the shard's lock, finds another generation under the lock and does
//! nothing. Because shards are never freed, a name alone is enough to find one, without a reference
//! count.
//!
//! A block is a run of shards whose number is a power of two, and begins at a multiple of that
//! number. One bit per shard says whether it is leased, so free blocks are split and joined without
//! further work. A lease takes the first free run. It is named by the greatest generation in it.
//!
//! - *Generations run out*: after 65,535 leases a shard is retired, so no name is ever used twice.
//! - *Indices run out* ([`INDICES`]): a timer gets a smaller block if there is one. Otherwise its
//!   [`Block`] is empty and the timer refuses everything.
//!
//! No thread waits for another one here. So a child process can lease shards whatever the other
//! threads of its parent were doing at the `fork`. The shards that these have leased stay leased.

use super::Shard;
use crate::config::WheelKind;
use crate::entry::ShardId;
use crate::sync::{Arc, AtomicU64, AtomicUsize, OnceRef, Ordering, current_cpu};
use crate::timer_context::TimerContext;

/// The number of shards that a process can have.
#[cfg(not(all(test, timer_loom)))]
const INDICES: usize = 1 << 16;
#[cfg(all(test, timer_loom))]
const INDICES: usize = 4;

/// The generation that no lease has.
const LAST_GENERATION: u16 = u16::MAX;

/// All shards by index.
pub(crate) struct Pool {
    shards: &'static [OnceRef<Shard>],
    /// One bit per shard, set while the shard is leased and once it is retired.
    leased: &'static [AtomicU64],
    /// The number of blocks that are leased.
    living: AtomicUsize,
}

/// The shards of the process and their bits. Both tables are zero at first, so they take neither
/// room in the program's file nor memory for the parts that are not used.
#[cfg(not(all(test, timer_loom)))]
static SHARDS: [OnceRef<Shard>; INDICES] = [const { OnceRef::new() }; INDICES];
#[cfg(not(all(test, timer_loom)))]
static LEASED: [AtomicU64; INDICES / 64] = [const { AtomicU64::new(0) }; INDICES / 64];

#[cfg(not(all(test, timer_loom)))]
static POOL: Pool = Pool { shards: &SHARDS, leased: &LEASED, living: AtomicUsize::new(0) };

/// Returns the shard with this name, which may have been leased to another timer since.
#[cfg(not(all(test, timer_loom)))]
#[inline]
pub(crate) fn shard_of(id: ShardId) -> &'static Shard {
    shard_at(&SHARDS, id.index)
}

#[cfg(all(test, timer_loom))]
crate::sync::lazy_static! {
    static ref POOL: Pool = Pool::small(INDICES);
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
        let largest = shards.clamp(1, INDICES / 2).next_power_of_two();
        let sizes = std::iter::successors(Some(largest), |size| Some(size / 2).filter(|half| *half > 0));
        let found = sizes.into_iter().find_map(|size| self.take(size).map(|first| (first, size)));
        let Some((first, size)) = found else { return Block { pool: self, id: None, shards: Box::default() } };
        // ORDERING: Relaxed, the number guards no other data.
        self.living.fetch_add(1, Ordering::Relaxed);
        let shards: Box<[_]> = (first..first + size).map(|index| shard_at(self.shards, index as u16)).collect();
        let generation = shards.iter().map(|shard| shard.id().generation).max().unwrap_or_default();
        let id = BlockId { first: first as u16, generation, mask: (size - 1) as u16 };
        Block { pool: self, id: Some(id), shards }
    }

    /// Returns the number of blocks that are leased.
    pub(crate) fn living(&self) -> usize {
        // ORDERING: Relaxed, the number guards no other data.
        self.living.load(Ordering::Relaxed)
    }

    /// Takes the first free run of `size` shards and returns its first index.
    fn take(&self, size: usize) -> Option<usize> {
        let per_word = size.min(64);
        let mask = u64::MAX >> (64 - size.min(64));
        self.leased.chunks_exact(size.div_ceil(64)).enumerate().find_map(|(nth, words)| {
            // ORDERING: Relaxed, `set` decides.
            let first = words.first()?.load(Ordering::Relaxed);
            let mut places = (0..64).step_by(per_word).filter(|at| first & (mask << at) == 0);
            places.find(|at| set(words, mask << at)).map(|at| nth * words.len() * 64 + at)
        })
    }

    /// Gives back a run of `size` shards.
    fn give_back(&self, first: usize, size: usize) {
        let mask = u64::MAX >> (64 - size.min(64));
        clear(&self.leased[first / 64..][..size.div_ceil(64)], mask << (first % 64));
    }

    /// Returns a pool of at most 64 shards that is never freed.
    #[cfg(test)]
    fn small(shards: usize) -> Self {
        let leased = if shards == 64 { 0 } else { u64::MAX << shards };
        let shards: Vec<_> = std::iter::repeat_with(OnceRef::new).take(shards).collect();
        let shards = shards.leak();
        let leased = Vec::from([AtomicU64::new(leased)]).leak();
        Self { shards, leased, living: AtomicUsize::new(0) }
    }
}

/// Sets these bits in each word. Returns `false` and changes nothing if one of them is set.
fn set(words: &[AtomicU64], mask: u64) -> bool {
    let set = |bits: u64| (bits & mask == 0).then_some(bits | mask);
    for (nth, word) in words.iter().enumerate() {
        // ORDERING: Acquire pairs with `clear`, so that the next lease sees the generations.
        if word.fetch_update(Ordering::Acquire, Ordering::Relaxed, set).is_err() {
            clear(&words[..nth], mask);
            return false;
        }
    }
    true
}

fn clear(words: &[AtomicU64], mask: u64) {
    for word in words {
        // ORDERING: Release pairs with `set`.
        word.fetch_and(!mask, Ordering::Release);
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
        let Some(id) = self.id else { return };
        self.shards.iter().for_each(|shard| shard.open(id.generation, context, wheel));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let next = self.shards.iter().map(|shard| shard.vacate()).max();
        if next != Some(LAST_GENERATION) {
            self.pool.give_back(id.first.into(), self.shards.len());
        }
        // ORDERING: Relaxed, the number guards no other data.
        self.pool.living.fetch_sub(1, Ordering::Relaxed);
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
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::clock::Present;
    use crate::config::Config;
    use crate::resolution::Resolution;
    use crate::sync::Mutex;

    /// The pools of the tests. A pool that nothing points to would be reported as a leak.
    static POOLS: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());

    fn pool_of(indices: usize) -> &'static Pool {
        let pool: &'static Pool = Box::leak(Box::new(Pool::small(indices)));
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
    fn blocks_are_split_and_joined() {
        let pool = pool_of(8);
        drop(pool.lease(8));
        let small: Vec<Block> = (0..8).map(|_| pool.lease(1)).collect();
        small.iter().for_each(open);
        let names_before: Vec<ShardId> = small.iter().flat_map(names).collect();
        assert_eq!(names_before.len(), 8, "each has one shard");
        assert!(pool.lease(1).shards.is_empty());
        drop(small);
        let large = pool.lease(8);
        open(&large);
        assert!(large.shards.len() == 8 && names(&large).iter().all(|name| !names_before.contains(name)));
    }

    #[test]
    fn a_joined_block_has_one_generation() {
        let pool = pool_of(2);
        (0..3).for_each(|_| open(&pool.lease(1)));
        let both = pool.lease(2);
        open(&both);
        let generations: Vec<u16> = names(&both).iter().map(|name| name.generation).collect();
        assert_eq!(generations, [3, 3], "the second shard was never leased");
    }

    #[test]
    fn a_large_block_covers_several_words() {
        let words = || (0..4).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        let shards: Vec<_> = std::iter::repeat_with(OnceRef::new).take(256).collect();
        let pool = Pool { shards: shards.leak(), leased: words(), living: AtomicUsize::new(0) };
        let pool: &'static Pool = Box::leak(Box::new(pool));
        POOLS.lock().push(pool);
        let one = pool.lease(1);
        let firsts = [128, 32, 64].map(|size| pool.lease(size).id.unwrap().first);
        assert_eq!(firsts, [128, 32, 64]);
        assert_eq!(pool.lease(256).shards.len(), 128);
        drop(one);
        assert_eq!(pool.lease(256).shards.len(), 256);
        // A run whose second word is leased leaves its first word free.
        let first = pool.lease(64);
        let _second = pool.lease(1);
        drop(first);
        assert_eq!([128, 64].map(|size| pool.lease(size).id.unwrap().first), [128, 0]);
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
