//! The sweep, which makes the allocator do its deferred work while no lock is held.
//!
//! A step of a wheel allocates under the lock of the shard. If the worker has freed many timeouts
//! before the step, glibc joins the free pieces in one of these allocations and sorts up to 10,000
//! of them in each, which takes milliseconds. The sweep makes such allocations before the step
//! locks, and frees each of them at once.
//!
//! An allocation ends early if it meets a free piece of exactly its size, such as a piece that the
//! previous sweep has freed. Therefore consecutive allocations differ in size, and none has the
//! size of an array of slots.

/// The smallest size in bytes. glibc serves allocations of less than 1 KiB from its caches and free
/// lists. The sizes of arrays of slots are multiples of 32, and no size of the sweep is.
const MIN_SIZE: usize = (2 << 10) + 24;

/// The difference between two successive sizes in bytes.
const SIZE_STEP: usize = 32;

/// The number of different sizes.
const SIZE_COUNT: usize = 31;

/// The least number of allocations in a sweep.
const MIN_ALLOCATIONS: usize = 4;

/// The number of decided entries for which a sweep makes one more allocation. Most of their memory
/// is free by then.
const ENTRIES_PER_ALLOCATION: usize = 8_192;

/// The number of decided entries after which a visit begins with a sweep. To join and sort fewer
/// pieces takes less than 0.1 ms.
const MANY_ENTRIES: usize = 512;

/// The largest number of allocations in a sweep. They take 16 to 18 us without deferred work.
const MAX_ALLOCATIONS: usize = 512;

/// The sweeps of one worker.
#[derive(Default)]
pub(super) struct Sweeper {
    /// The number of entries that were decided since the last sweep.
    decided: usize,
    /// The index of the next size.
    next_index: usize,
}

impl Sweeper {
    /// Counts decided entries, whose memory may be free.
    pub(super) fn count(&mut self, decided: usize) {
        self.decided += decided;
    }

    /// Sweeps the allocator before the first step of a visit, if that may be worth the time. A lone
    /// timeout is not worth it.
    pub(super) fn sweep_if_many(&mut self) {
        if self.decided >= MANY_ENTRIES {
            self.sweep();
        }
    }

    /// Sweeps the allocator. Called with no lock held.
    pub(super) fn sweep(&mut self) {
        for size in self.sizes() {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(size)));
        }
    }

    /// Returns the sizes of the allocations of the next sweep.
    fn sizes(&mut self) -> impl Iterator<Item = usize> + use<> {
        let count = (MIN_ALLOCATIONS + std::mem::take(&mut self.decided) / ENTRIES_PER_ALLOCATION).min(MAX_ALLOCATIONS);
        let first = self.next_index;
        self.next_index = (first + count) % SIZE_COUNT;
        (first..first + count).map(|nth| MIN_SIZE + nth % SIZE_COUNT * SIZE_STEP)
    }
}

#[cfg(all(test, not(timer_loom)))]
impl Sweeper {
    pub(super) fn decided(&self) -> usize {
        self.decided
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    fn sweep_len_after(decided: usize) -> usize {
        let mut sweeper = Sweeper::default();
        sweeper.count(decided);
        sweeper.sizes().count()
    }

    #[test]
    fn a_sweep_grows_with_the_number_of_decided_entries() {
        assert_eq!([0, 8_191, 62_500, usize::MAX].map(sweep_len_after), [4, 4, 11, 512]);
    }

    #[test]
    fn a_decided_entry_counts_for_only_one_sweep() {
        let mut sweeper = Sweeper::default();
        [8_000, 8_000, 8_000].into_iter().for_each(|decided| sweeper.count(decided));
        assert_eq!([sweeper.sizes().count(), sweeper.sizes().count()], [6, 4]);
    }

    #[test]
    fn consecutive_sizes_differ_and_match_no_array_of_slots() {
        let mut sweeper = Sweeper::default();
        let sizes: Vec<usize> = (0..20).flat_map(|_| sweeper.sizes()).collect();
        let differ = |sizes: &[usize]| (1..SIZE_COUNT).all(|nth| sizes[nth] != sizes[0]);
        assert!(sizes.windows(SIZE_COUNT).all(differ), "{sizes:?}");
        // They differ from the sizes of arrays even after glibc adds 8 bytes and rounds up to 16.
        assert!(sizes.iter().all(|size| (size + 8).next_multiple_of(16) % 32 == 0), "{sizes:?}");
    }
}
