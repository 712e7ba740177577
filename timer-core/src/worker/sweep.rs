//! The sweep, which makes the allocator do work that it has deferred, so that its next requests are
//! short.
//!
//! A step of a wheel allocates under the lock. After the batch before it has freed many timeouts,
//! glibc joins the free pieces in one of the next requests and sorts up to 10,000 of them in each,
//! which takes milliseconds. The sweep makes such requests while no lock is held.
//!
//! A request ends early if it meets a free piece of exactly its size, such as the one that the
//! sweep before it has left. So successive requests differ in size, and no array of slots has one
//! of these sizes.

/// The size of the smallest request in bytes. glibc serves requests of less than 1 KiB from its
/// caches and free lists. An array of slots takes a multiple of 32 bytes.
const MIN_SIZE: usize = (2 << 10) + 24;

/// The difference between two successive sizes in bytes.
const STEP: usize = 32;

/// The number of different sizes.
const SIZES: usize = 31;

/// The least number of requests in a sweep.
const MIN_REQUESTS: usize = 4;

/// One more request is made for this many entries that were decided since the last sweep. Most of
/// their memory is free by then.
const SORTED: usize = 8_192;

/// The most requests in a sweep. They take 7 to 15 us if there is nothing to do.
const MAX_REQUESTS: usize = 512;

/// The sweeps of one worker.
#[derive(Default)]
pub(super) struct Sweeper {
    /// The number of entries that were decided since the last sweep.
    decided: usize,
    /// The number of the next size.
    next_size: usize,
}

impl Sweeper {
    /// Counts decided entries, whose memory may be free.
    pub(super) fn count(&mut self, decided: usize) {
        self.decided += decided;
    }

    /// Sweeps the allocator. Called with no lock held.
    pub(super) fn sweep(&mut self) {
        for size in self.requests() {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(size)));
        }
    }

    /// Returns the sizes of the requests of the next sweep.
    fn requests(&mut self) -> impl Iterator<Item = usize> + use<> {
        let requests = (MIN_REQUESTS + std::mem::take(&mut self.decided) / SORTED).min(MAX_REQUESTS);
        let first = self.next_size;
        self.next_size = (first + requests) % SIZES;
        (first..first + requests).map(|nth| MIN_SIZE + nth % SIZES * STEP)
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

    fn after(decided: usize) -> usize {
        let mut sweeper = Sweeper::default();
        sweeper.count(decided);
        sweeper.requests().count()
    }

    #[test]
    fn a_sweep_grows_with_the_number_of_decided_entries() {
        assert_eq!([0, 8_191, 62_500, usize::MAX].map(after), [4, 4, 11, 512]);
    }

    #[test]
    fn entries_count_for_one_sweep() {
        let mut sweeper = Sweeper::default();
        [8_000, 8_000, 8_000].into_iter().for_each(|decided| sweeper.count(decided));
        assert_eq!([sweeper.requests().count(), sweeper.requests().count()], [6, 4]);
    }

    #[test]
    fn successive_requests_have_sizes_that_no_array_of_slots_has() {
        let mut sweeper = Sweeper::default();
        let sizes: Vec<usize> = (0..20).flat_map(|_| sweeper.requests()).collect();
        let differ = |sizes: &[usize]| (1..SIZES).all(|nth| sizes[nth] != sizes[0]);
        assert!(sizes.windows(SIZES).all(differ), "{sizes:?}");
        // With the 8 bytes that glibc adds, as well.
        assert!(sizes.iter().all(|size| size % STEP == MIN_SIZE % STEP && size % STEP > 16), "{sizes:?}");
    }
}
