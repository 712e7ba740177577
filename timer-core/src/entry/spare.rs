//! Lists of free entries per thread. The memory of ended timeouts goes there, and new timeouts take
//! it from there.
//!
//! A server with a time limit per request frees and allocates an entry for each request. A list
//! costs fewer instructions than the fast path of an allocator. It also has more places. A thread
//! of an async runtime often frees dozens of entries in a row and then allocates dozens, and the
//! caches of general allocators hold fewer than that.
//!
//! A thread has a list for each of the sizes in [`LAYOUTS`], with at most [`MAX_SPARES`] places,
//! and frees them when it ends. Only memory is kept. The entry that was in it has ended, and its
//! job is dropped.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;

/// The number of places in a list, which are 2 to 4 KiB.
const MAX_SPARES: usize = 64;

/// The layouts of the entries that a thread keeps. They have a header of 32 bytes and jobs of up to
/// three words.
const LAYOUTS: [Layout; 4] = [layout(32), layout(40), layout(48), layout(56)];

const fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, 8) {
        Ok(layout) => layout,
        Err(_) => panic!("an alignment that is no power of two"),
    }
}

/// Returns the index of the list for entries of the type `E`, or the number of lists if such
/// entries are not kept. Miri, valgrind and the fuzzer get all memory back, so that they find uses
/// of an entry that has ended. The address sanitizer runs with the lists and finds such uses by
/// [`poison`].
pub(super) const fn list_of<E>() -> usize {
    let entry = Layout::new::<E>();
    let mut list = if cfg!(any(miri, fuzzing, timer_no_spares, all(test, timer_loom))) { LAYOUTS.len() } else { 0 };
    while list < LAYOUTS.len() && !(LAYOUTS[list].size() == entry.size() && LAYOUTS[list].align() == entry.align()) {
        list += 1;
    }
    list
}

/// The places of one size.
struct Spares {
    count: Cell<usize>,
    places: [Cell<Option<NonNull<u8>>>; MAX_SPARES],
}

/// The lists of one thread, in the order of [`LAYOUTS`].
struct Lists([Spares; LAYOUTS.len()]);

thread_local! {
    static LISTS: Lists = const { Lists([const { Spares::new() }; LAYOUTS.len()]) };
}

/// Allocates memory for an entry of the type `E`. Returns `None` if the allocator fails.
#[inline]
pub(super) fn allocate<E>() -> Option<NonNull<E>> {
    let take = |lists: &Lists| lists.0.get(const { list_of::<E>() })?.take();
    if let Ok(Some(place)) = LISTS.try_with(take) {
        poison(place, Layout::new::<E>(), false);
        return Some(place.cast());
    }
    // SAFETY: the layout is not empty, because it contains a header.
    NonNull::new(unsafe { alloc(Layout::new::<E>()) }).map(NonNull::cast)
}

/// Frees the memory of an entry, or keeps it in the list with the index `list` for another one.
///
/// # Safety
///
/// The memory is from [`allocate`] for an entry of this list and layout, and no reference to it is
/// left.
#[inline]
pub(super) unsafe fn free(place: NonNull<u8>, list: usize, layout: &Layout) {
    let keep = |lists: &Lists| lists.0.get(list).is_some_and(|list| list.keep(place));
    // A thread that is ending has no lists any more.
    if LISTS.try_with(keep) == Ok(true) {
        return poison(place, *layout, true);
    }
    // SAFETY: the caller's promise.
    unsafe { dealloc(place.as_ptr(), *layout) };
}

/// Lets the address sanitizer report uses of a place from now on, or stops that.
#[inline]
fn poison(place: NonNull<u8>, layout: Layout, is_on: bool) {
    #[cfg(timer_asan)]
    {
        unsafe extern "C" {
            fn __asan_poison_memory_region(place: *const u8, size: usize);
            fn __asan_unpoison_memory_region(place: *const u8, size: usize);
        }
        let mark = if is_on { __asan_poison_memory_region } else { __asan_unpoison_memory_region };
        // SAFETY: the place belongs to a list, and the sanitizer only marks it.
        unsafe { mark(place.as_ptr(), layout.size()) };
    }
    let _ = (place, layout, is_on);
}

impl Spares {
    const fn new() -> Self {
        Self { count: Cell::new(0), places: [const { Cell::new(None) }; MAX_SPARES] }
    }

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

impl Drop for Lists {
    fn drop(&mut self) {
        for (list, layout) in self.0.iter().zip(LAYOUTS) {
            while let Some(place) = list.take() {
                poison(place, layout, false);
                // SAFETY: the list holds the memory of entries of this layout, to which no
                // reference is left.
                unsafe { dealloc(place.as_ptr(), layout) };
            }
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::entry::task_right::Entry;

    #[test]
    fn a_full_list_refuses_a_place() {
        let spares = Spares::new();
        // SAFETY: the layout is not empty.
        let places = || NonNull::new(unsafe { alloc(LAYOUTS[0]) }).unwrap();
        let kept: Vec<_> = (0..MAX_SPARES).map(|_| places()).collect();
        assert!(kept.iter().all(|place| spares.keep(*place)));
        assert!(!spares.keep(NonNull::dangling()));
        assert_eq!(spares.take(), kept.last().copied(), "the one that is in the cache most likely");
        assert!(spares.keep(kept[MAX_SPARES - 1]));
        drop(Lists([spares, Spares::new(), Spares::new(), Spares::new()]));
    }

    #[cfg(timer_asan)]
    #[test]
    fn the_sanitizer_knows_a_kept_place() {
        unsafe extern "C" {
            fn __asan_address_is_poisoned(place: *const u8) -> i32;
        }
        type Job = crate::entry::Closure<fn(&crate::Timeout)>;
        let place = allocate::<crate::entry::EntryOf<Job>>().unwrap().cast::<u8>();
        // SAFETY: the function does not read the place.
        let is_poisoned = || unsafe { __asan_address_is_poisoned(place.as_ptr()) } == 1;
        assert!(!is_poisoned());
        let list = list_of::<crate::entry::EntryOf<Job>>();
        // SAFETY: the place has this layout, and no reference to it exists.
        unsafe { free(place, list, &Layout::new::<crate::entry::EntryOf<Job>>()) };
        assert!(is_poisoned());
    }

    #[cfg(not(any(miri, fuzzing, timer_no_spares)))]
    #[test]
    fn entries_with_jobs_of_up_to_three_words_are_kept() {
        assert_eq!([list_of::<Entry<()>>(), list_of::<Entry<u8>>(), list_of::<Entry<[u64; 3]>>()], [0, 1, 3]);
        #[repr(align(16))]
        struct Aligned;
        assert_eq!(
            [list_of::<Entry<[u64; 4]>>(), list_of::<Entry<Aligned>>()],
            [LAYOUTS.len(); 2],
            "of four words, or aligned to 16"
        );
    }
}
