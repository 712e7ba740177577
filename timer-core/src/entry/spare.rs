//! A list of free entries per thread. The entries of ended futures go there, and new futures take
//! them from there.
//!
//! A server with a time limit per request frees and allocates an entry for each request. A thread
//! of a runtime often frees dozens of entries in a row and then allocates dozens. The caches of
//! general allocators hold fewer than that, so such a series leaves their fast path.
//!
//! The list of a thread has at most [`MAX_SPARES`] places, and is freed when the thread ends. Only
//! memory is kept. The entry that was in it has ended, and its waker is dropped.

use super::job::{Job, Wakeup};
use super::state::Runs;
use super::{Entry, VTable};
use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;

/// The number of places that a thread keeps, which are 3 KiB.
const MAX_SPARES: usize = 64;

/// The layout of the entry of a future, whose job is the only one that wakes tasks.
const LAYOUT: Layout = Layout::new::<Entry<Wakeup>>();

/// Returns `true` if the memory of this kind of entries is kept. Checkers get all memory back, so
/// that they find uses of an entry that has ended.
#[inline]
const fn is_kept(runs: Runs) -> bool {
    matches!(runs, Runs::Wake) && !cfg!(any(miri, all(test, timer_loom)))
}

/// The places of one thread.
struct Spares {
    count: Cell<usize>,
    places: [Cell<Option<NonNull<u8>>>; MAX_SPARES],
}

thread_local! {
    static SPARES: Spares = const { Spares { count: Cell::new(0), places: [const { Cell::new(None) }; MAX_SPARES] } };
}

/// Allocates the memory of an entry with the job `J`. Returns `None` if there is none.
#[inline]
pub(super) fn allocate<J: Job>() -> Option<NonNull<Entry<J>>> {
    const { assert!(!is_kept(J::RUNS) || size_of::<Entry<J>>() == LAYOUT.size()) };
    const { assert!(!is_kept(J::RUNS) || align_of::<Entry<J>>() == LAYOUT.align()) };
    if is_kept(J::RUNS) {
        if let Ok(Some(place)) = SPARES.try_with(Spares::take) {
            return Some(place.cast());
        }
    }
    // SAFETY: the layout is not empty, because it contains a header.
    NonNull::new(unsafe { alloc(Layout::new::<Entry<J>>()) }).map(NonNull::cast)
}

/// Frees the memory of an entry, or keeps it for another one.
///
/// # Safety
///
/// The memory is from [`allocate`] for an entry of this table, and no reference to it is left.
#[inline]
pub(super) unsafe fn free(place: NonNull<u8>, vtable: &VTable) {
    // A thread that is ending has no list any more.
    if is_kept(vtable.runs) && SPARES.try_with(|spares| spares.keep(place)) == Ok(true) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { dealloc(place.as_ptr(), vtable.layout) };
}

impl Spares {
    #[inline]
    fn take(&self) -> Option<NonNull<u8>> {
        let last = self.count.get().checked_sub(1)?;
        self.count.set(last);
        self.places.get(last)?.take()
    }

    /// Returns `false` if the list is full.
    #[inline]
    fn keep(&self, place: NonNull<u8>) -> bool {
        let count = self.count.get();
        let Some(free) = self.places.get(count) else { return false };
        free.set(Some(place));
        self.count.set(count + 1);
        true
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        while let Some(place) = self.take() {
            // SAFETY: the list holds the memory of entries of this layout, to which no reference is
            // left.
            unsafe { dealloc(place.as_ptr(), LAYOUT) };
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_refuses_a_place() {
        let spares = Spares { count: Cell::new(0), places: [const { Cell::new(None) }; MAX_SPARES] };
        // SAFETY: the layout is not empty.
        let places = || NonNull::new(unsafe { alloc(LAYOUT) }).unwrap();
        let kept: Vec<_> = (0..MAX_SPARES).map(|_| places()).collect();
        assert!(kept.iter().all(|place| spares.keep(*place)));
        assert!(!spares.keep(NonNull::dangling()));
        assert_eq!(spares.take(), kept.last().copied(), "the one that is in the cache most likely");
        assert!(spares.keep(kept[MAX_SPARES - 1]));
    }
}
