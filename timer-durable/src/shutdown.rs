//! The shutdown of a timer, which its callers, its keeper and its handlers see.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of [`DurableTimer::stop`](crate::DurableTimer::stop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "StopReport")]
pub struct DurableStopReport {
    /// Handlers that had not ended at the limit. Their timeouts run again after the next start,
    /// with a higher attempt. Those that still wait for a thread do not start any more, and their
    /// attempts do not count unless the store fails.
    pub unfinished: usize,
    /// Whether the store was handed back. If it hangs beyond the limit, it is handed back when it
    /// answers. Until then a file stays in use, and shards are taken over when the lease is over.
    /// The same is true of shards if the store could not be reached. A keeper that has ended by a
    /// panic has closed the store without handing its shards back.
    #[doc(alias = "is_released")]
    pub released: bool,
}

/// The shutdown of a timer, which its handles, its keeper and its handlers see.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// The report of the keeper, once it has ended.
    pub(crate) report: OnceLock<DurableStopReport>,
    is_requested: AtomicBool,
    is_given_up: AtomicBool,
}

impl Shutdown {
    /// Notes that the timer is to stop, so that the keeper refuses the calls in its queue.
    pub(crate) fn request(&self) {
        // ORDERING: Release, pairs with `is_requested`.
        self.is_requested.store(true, Ordering::Release);
    }

    /// Returns `true` if the timer is to stop.
    pub(crate) fn is_requested(&self) -> bool {
        // ORDERING: Acquire, pairs with `request`.
        self.is_requested.load(Ordering::Acquire)
    }

    /// Notes that `stop` gives up a store that hangs.
    pub(crate) fn give_up(&self) {
        // ORDERING: Release, pairs with `is_given_up`.
        self.is_given_up.store(true, Ordering::Release);
    }

    /// Returns `true` if `stop` has given up a store that hangs. No handler starts after that.
    pub(crate) fn is_given_up(&self) -> bool {
        // ORDERING: Acquire, pairs with `give_up`.
        self.is_given_up.load(Ordering::Acquire)
    }
}
