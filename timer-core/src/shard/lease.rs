//! The lease of a shard: which timer the shard serves, and whether it accepts timeouts.
//!
//! A shard keeps its lease twice, once behind its own lock and once behind the lock of its inbox,
//! because a caller may hold only one of the two. The fields are private to this module, so every
//! access to the timer's [`Context`] compares the generation. A thread that was preempted with the
//! name of an earlier lease therefore counts nothing for the present timer and gives back none of
//! its permits.

use crate::context::Context;
use crate::entry::ShardId;
use crate::sync::{Arc, AtomicU32, Ordering};

/// The timer that a shard serves under one generation.
#[derive(Default)]
pub(super) struct Lease {
    /// `None` while the shard serves no timer.
    context: Option<Arc<Context>>,
    generation: u16,
    is_open: bool,
}

impl Lease {
    /// Returns the lease of a shard that serves the timer of `context` and accepts timeouts.
    pub(super) fn new(generation: u16, context: Arc<Context>) -> Self {
        Self { context: Some(context), generation, is_open: true }
    }

    /// Refuses timeouts from now on. The shard still serves its timer.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Returns the timer that leases the shard under the generation of `id`, stopped or not.
    #[inline]
    pub(super) fn context(&self, id: ShardId) -> Option<&Arc<Context>> {
        self.context.as_ref().filter(|_| self.generation == id.generation)
    }

    /// Returns the timer that leases the shard under the generation of `id`, if it accepts
    /// timeouts.
    #[inline]
    pub(super) fn serving(&self, id: ShardId) -> Option<&Arc<Context>> {
        self.context(id).filter(|_| self.is_open)
    }
}

/// A copy of a shard's lease for threads that hold no lock. It may be out of date at any time.
///
/// The word is the generation, shifted left by one. Its lowest bit is set while the lease is open.
#[derive(Default)]
pub(super) struct LeaseHint(AtomicU32);

impl LeaseHint {
    fn word(generation: u16, is_open: bool) -> u32 {
        u32::from(generation) << 1 | u32::from(is_open)
    }

    /// Called by the holder of the shard's lock.
    pub(super) fn set(&self, generation: u16, is_open: bool) {
        // ORDERING: Relaxed, one word has one history. `Shard::now_of` explains how it is ordered
        // with the time.
        self.0.store(Self::word(generation, is_open), Ordering::Relaxed);
    }

    /// Returns the generation of the present or the next lease.
    #[inline]
    pub(super) fn generation(&self) -> u16 {
        // ORDERING: Relaxed, as in `set`.
        (self.0.load(Ordering::Relaxed) >> 1) as u16
    }

    /// Returns `true` if the timer of this generation leases the shard and is not stopped.
    #[inline]
    pub(super) fn is_open(&self, generation: u16) -> bool {
        // ORDERING: Relaxed, as in `set`.
        self.0.load(Ordering::Relaxed) == Self::word(generation, true)
    }
}
