//! The lease of a shard: which timer the shard serves, and whether it accepts timeouts.
//!
//! A shard keeps its lease twice, once behind its own lock and once behind the lock of its inbox,
//! because a caller may hold only one of the two. The fields are private to this module, so every
//! access to the [`TimerContext`] compares the generation. A thread that was preempted with the
//! name of an earlier lease therefore counts nothing for the timer that leases the shard now, and
//! gives back none of its permits.

use crate::entry::ShardId;
use crate::sync::{Arc, AtomicU32, Ordering};
use crate::timer_context::TimerContext;

/// The timer that a shard serves under one generation.
#[derive(Default)]
pub(super) struct Lease {
    /// `None` while the shard serves no timer.
    context: Option<Arc<TimerContext>>,
    generation: u16,
    is_open: bool,
}

impl Lease {
    /// Returns the lease of a shard that serves the timer of `context` and accepts timeouts.
    pub(super) fn new(generation: u16, context: Arc<TimerContext>) -> Self {
        Self { context: Some(context), generation, is_open: true }
    }

    /// Refuses timeouts from now on. The shard still serves its timer.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Returns the timer that leases the shard under the generation of `id`, stopped or not.
    #[inline]
    pub(super) fn context(&self, id: ShardId) -> Option<&Arc<TimerContext>> {
        self.context.as_ref().filter(|_| self.generation == id.generation)
    }

    /// Returns the timer that leases the shard under the generation of `id`, if it accepts
    /// timeouts.
    #[inline]
    pub(super) fn serving(&self, id: ShardId) -> Option<&Arc<TimerContext>> {
        self.context(id).filter(|_| self.is_open)
    }
}

/// A copy of a shard's lease for threads that hold no lock. It may be out of date at any time.
///
/// The word is the generation, shifted left by two, and two bits. One of them is set while the
/// lease is open, the other one if its timer is on virtual time. The holder of the shard's lock
/// writes it.
#[derive(Default)]
pub(super) struct LeaseHint(AtomicU32);

const OPEN: u32 = 1;
const VIRTUAL: u32 = 2;

impl LeaseHint {
    pub(super) fn open(&self, generation: u16, is_virtual: bool) {
        let bits = if is_virtual { OPEN | VIRTUAL } else { OPEN };
        self.set(u32::from(generation) << 2 | bits);
    }

    pub(super) fn close(&self) {
        self.set(self.get() & !OPEN);
    }

    /// Ends the lease. `next` is the generation of the next one.
    pub(super) fn vacate(&self, next: u16) {
        self.set(u32::from(next) << 2);
    }

    fn set(&self, word: u32) {
        // ORDERING: Relaxed, because one word has one history, and no thread goes by other memory
        // that it describes.
        self.0.store(word, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> u32 {
        // ORDERING: Relaxed, as in `set`.
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the generation of the current or the next lease.
    #[inline]
    pub(super) fn generation(&self) -> u16 {
        (self.get() >> 2) as u16
    }

    /// Returns `true` if the timer that leases the shard is on virtual time.
    #[inline]
    pub(super) fn is_virtual(&self) -> bool {
        self.get() & VIRTUAL != 0
    }

    /// Returns `true` if the timer of this generation leases the shard and is not stopped.
    #[inline]
    pub(super) fn is_open(&self, generation: u16) -> bool {
        self.get() & !VIRTUAL == u32::from(generation) << 2 | OPEN
    }
}
