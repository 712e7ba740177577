//! The permits of calls and of reads, which bound the queues of the keeper and of the thread that
//! reads.
//!
//! A call takes a permit before it becomes a message, and gives it back when it is answered or
//! dropped. If all permits are taken, the call is refused.

use crate::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The permits of a timer's calls.
pub(crate) struct CallPermits {
    allowed: usize,
    free: AtomicUsize,
}

/// The permit of a call. Dropping it gives it back.
pub(crate) struct CallPermit(Arc<CallPermits>);

impl CallPermits {
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self { allowed: permits, free: AtomicUsize::new(permits) })
    }

    /// Takes a permit, or refuses the call.
    pub(crate) fn take(self: &Arc<Self>) -> Result<CallPermit, Error> {
        // ORDERING: Relaxed, the number guards no other data.
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        match taken {
            Ok(_) => Ok(CallPermit(self.clone())),
            Err(_) => Err(Error::QueueFull { allowed: self.allowed }),
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        // ORDERING: Relaxed, as in `take`.
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}
