//! The registration of a future, which is the entry that waits for its deadline and has its waker.

use crate::entry::{ShardId, Timeout, Wakeup};
use crate::shard::contain;
use core::task::Waker;
use timer_executor::panics;

/// An entry that waits, or has waited, for the deadline of a future.
pub(super) struct Registration {
    pub(super) entry: Timeout,
    /// The waker in the entry.
    pub(super) waker: WakerId,
}

/// Identifies a waker, as [`Waker::will_wake`] does, without owning it.
///
/// This is the identity of the clone in the entry. The clone keeps its data alive, so no other
/// waker has the same data. The waker of the last poll may be gone, and another one may have its
/// address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    /// Returns the identity by which to recognize `given` while its `clone` is in the entry.
    ///
    /// If both have the same data, that data lives as long as the clone, so `given` itself is
    /// recognized, even if the vtables differ. Otherwise only the clone is.
    fn of_either(given: &Waker, clone: &Waker) -> Self {
        let given = Self::of(given);
        let clone = Self::of(clone);
        if given.data == clone.data { given } else { clone }
    }

    #[inline]
    pub(super) fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Drop for Registration {
    /// Performs step 4.
    #[inline]
    fn drop(&mut self) {
        let (cancel, right) = self.entry.decide_cancel();
        if self.entry.finish_cancel(cancel) {
            let waker = right.and_then(|right| right.into_job::<Wakeup>());
            contain(self.entry.shard_id(), || drop(waker));
        }
    }
}

/// Drops the waker in an entry that no other thread has seen.
pub(super) fn discard(entry: &Timeout) {
    let waker = entry.decide_cancel().1.and_then(|right| right.into_job::<Wakeup>());
    contain(entry.shard_id(), || drop(waker));
}

/// Clones a waker. If the waker panics, asks it for another poll and returns `None`.
#[inline]
pub(super) fn clone(waker: &Waker, id: ShardId) -> Option<(Waker, WakerId)> {
    let Some(clone) = contain(id, || waker.clone()) else {
        wake_again(waker);
        return None;
    };
    let identity = WakerId::of_either(waker, &clone);
    Some((clone, identity))
}

/// Asks for another poll. A panic of the waker goes no further.
#[cold]
fn wake_again(waker: &Waker) {
    panics::contain("a waker panicked", || waker.wake_by_ref());
}
