//! The lease of a shard: which timer the shard serves, and whether it accepts timeouts.
//!
//! A shard keeps its lease twice, once behind its own lock and once behind the lock of its inbox,
//! because a caller may hold only one of the two. The fields are private to this module, so every
//! access to the timer's [`Context`] compares the generation. A thread that was preempted with the
//! name of an earlier lease therefore counts nothing for the present timer and gives back none of
//! its permits.

use crate::context::Context;
use crate::entry::ShardId;
use crate::sync::Arc;

/// The timer that a shard serves under one generation.
pub(super) struct Lease {
    /// `None` while the shard serves no timer.
    context: Option<Arc<Context>>,
    generation: u16,
    is_open: bool,
}

impl Lease {
    /// Returns the lease of a shard that serves no timer.
    pub(super) fn none() -> Self {
        Self { context: None, generation: 0, is_open: false }
    }

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
