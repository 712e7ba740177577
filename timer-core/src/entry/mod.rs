//! A timeout: one entry on the heap, and the counted references to it.
//!
//! ```text
//!  0       8      12         16        24       28      30           32
//! +-------+------+----------+---------+--------+-------+------------+---------
//! | state | refs | position | vtable  | bucket | shard | generation | the job
//! +-------+------+----------+---------+--------+-------+------------+---------
//! ```
//!
//! - The **state word** belongs to all threads, which change it only by the transitions of
//!   [`state`].
//! - The **job** (the task and its captures) belongs to the thread that won it by a transition, as
//!   a [`TaskRight`]. That thread calls and drops the job while it holds no lock.
//! - The **period** of a periodic job belongs to all threads.
//! - The **location** (bucket and position) is written by the holder of the shard's lock.
//! - The **shard** and its generation never change. The entry stores them as numbers, so this
//!   module does not name the type of a shard.
//! - A **reference** is a [`Timeout`], whether it belongs to the user, a request or a turn, or the
//!   [`Linked`] of a wheel. All references are counted in `refs`.
//!
//! # The reference of the wheel
//!
//! When a cancelled timeout leaves its wheel, the slot of the wheel is not read, because it may not
//! be in the cache, and counting down its reference would cost a read-modify-write. Instead, the
//! canceller takes that reference over and leaves `refs` as it is. It marks the entry with
//! [`Location::REFERENCE_TAKEN`] ([`Timeout::take_over`]). From then on, `refs` is one more than
//! the number of references that are left. A thread drops a reference in two steps, and needs only
//! step 1 for the last one:
//!
//! 1. Load `refs` (Acquire), then the mark. If one reference is left, free the entry.
//! 2. Otherwise subtract one from `refs` by a compare-and-swap. If that fails, start again.
//!
//! This is correct for the following reasons:
//!
//! - `refs` changes only by read-modify-writes. The mark is set at most once, by a canceller that
//!   holds another counted reference, when the state is `Cancelled`. That state is final, so
//!   nothing links the entry again.
//! - A thread that drops its reference and reads the mark too early sees `refs` of 3 or more: its
//!   own, the canceller's and the wheel's. A real reference therefore remains after its swap.
//! - A thread that sees 2 after the canceller has dropped its own also sees the mark, because the
//!   canceller stored the mark before its swap, and this load acquires that swap.
//! - A thread that sees 2 while the wheel's reference is real subtracts one, and the wheel's
//!   remains. It has the only other reference, so no other thread can cancel the entry or clone a
//!   reference between the two loads.
//! - A thread never touches the entry after a swap that was not the last.
//!
//! Only entries of periodic tasks contradict the fourth point. A run gets a reference from the
//! wheel, may clone it for another thread, and arms the entry again, so that thread can cancel the
//! entry between the two loads. For these entries the wheel's reference is therefore counted down.
//!
//! # Unsafe code
//!
//! This is one of two modules with unsafe code. It upholds three invariants:
//!
//! 1. The pointer in a `Timeout` points to an allocation made by [`Timeout::new`], which is alive
//!    while a counted reference exists.
//! 2. The entry is freed once, with the layout of its vtable.
//! 3. The job is in the entry exactly while no [`TaskRight`] has taken it, and only that one right
//!    reaches it.

mod job;
mod linked;
mod named;
mod period;
#[allow(clippy::disallowed_types, reason = "no other thread sees the list of a thread")]
mod spare;
pub(crate) mod state;
mod task_right;

pub(crate) use job::{Closure, Hooked, Job, Periodic, Wakeup};
pub use job::{PeriodicTask, TimerTask};
pub(crate) use linked::{EntryTracker, Linked};
pub use named::{Named, TaskName};
pub(crate) use period::{Period, period_nanos};
pub(crate) use task_right::{TaskKind, TaskRight};

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::wheel::Location;
use state::{AtomicState, Runs};
use std::alloc::Layout;
use std::any::TypeId;
use std::ptr::NonNull;

/// More references than a program can hold. A program that reaches this count leaks references. It
/// is aborted, because a count that wraps around would free an entry in use.
const MAX_REFS: u32 = i32::MAX as u32;

/// The part that is the same for every type of job.
#[repr(C)]
struct Header {
    state: AtomicState,
    refs: AtomicU32,
    position: AtomicU32,
    vtable: &'static VTable,
    bucket: AtomicU32,
    shard: ShardId,
    #[cfg(all(test, timer_loom))]
    memory: crate::sync::Memory,
}

/// The properties of a job type.
struct VTable {
    runs: Runs,
    layout: Layout,
    /// The index of the list that keeps the memory of an ended entry.
    spares: usize,
    job: fn() -> TypeId,
    name: fn() -> &'static str,
    /// Takes the job out and runs it. Returns the period if the job is back in the entry and runs
    /// again.
    ///
    /// # Safety
    ///
    /// This and the other functions require that the entry is of this table's type, that only the
    /// caller has the right to its job, and that the job is in the entry.
    run: unsafe fn(NonNull<Header>, &Timeout) -> Option<Period>,
    /// Returns the period of the job. The caller may use it only while a reference to the entry
    /// exists.
    period: unsafe fn(NonNull<Header>) -> Option<&'static AtomicU64>,
    /// Takes the job out and tells it that it will not run.
    cancelled: unsafe fn(NonNull<Header>, &Timeout),
}

/// The name of a shard during one lease. The next lease has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardId {
    pub(crate) index: u16,
    pub(crate) generation: u16,
}

/// A handle to an accepted timeout.
///
/// The handle is as wide as a pointer. Clones refer to the same timeout, compare equal and hash
/// equally. Dropping all of them does **not** cancel the timeout.
///
/// Any thread may call any method at any time, also from inside a task and after the timer is gone.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let timeout = timer.new_timeout(Duration::from_secs(30), |_| println!("no answer"))?;
/// assert!(timeout.reset(Duration::from_secs(60)));
/// assert!(timeout.cancel());
/// assert!(timeout.is_cancelled() && !timeout.is_expired());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "HashedWheelTimeout")]
#[doc(alias = "ScheduledFuture")]
#[doc(alias = "TimerTaskEntry")]
#[derive(PartialEq, Eq, Hash)]
pub struct Timeout {
    entry: NonNull<Header>,
}

// SAFETY: a reference reaches atomics, constants, and through the one `TaskRight` the job. Jobs are
// `Send`.
unsafe impl Send for Timeout {}
// SAFETY: as above.
unsafe impl Sync for Timeout {}

impl Timeout {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: by invariant 1 the entry is alive. No code makes an exclusive reference to a
        // header.
        let header = unsafe { self.entry.as_ref() };
        #[cfg(all(test, timer_loom))]
        header.memory.assert_in_use();
        header
    }

    /// Returns the state word, with the transitions that win no task.
    #[inline]
    pub(crate) fn state(&self) -> &AtomicState {
        &self.header().state
    }

    /// Returns the name of the shard in whose wheel the entry waits.
    #[inline]
    pub(crate) fn shard_id(&self) -> ShardId {
        self.header().shard
    }

    #[inline]
    pub(crate) fn runs(&self) -> Runs {
        self.header().vtable.runs
    }

    /// Returns the period in nanoseconds if the task is periodic.
    pub(crate) fn period(&self) -> Option<&AtomicU64> {
        // SAFETY: the table is the entry's own, and the entry lives as long as `self`.
        unsafe { (self.header().vtable.period)(self.entry) }
    }

    /// Returns a number that no other living entry has.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.entry.addr().get()
    }

    /// Returns the place where the entry is linked or was linked last. Called by the holder of the
    /// shard's lock.
    #[inline]
    pub(crate) fn location(&self) -> Location {
        let header = self.header();
        // ORDERING: Relaxed, only holders of the lock write it, and each acquires from the one
        // before.
        Location::new(header.bucket.load(Ordering::Relaxed), header.position.load(Ordering::Relaxed))
    }

    /// Returns the reference of the wheel, which is counted. The caller holds the shard's lock and
    /// has just removed the [`Linked`] from the wheel, which nobody uses any more.
    #[inline]
    pub(crate) fn wheel_reference(&self) -> Timeout {
        Timeout { entry: self.entry }
    }

    /// Takes over the [reference of the wheel](Self::wheel_reference) without counting it down. The
    /// caller has cancelled the entry.
    #[inline]
    pub(crate) fn take_over(&self) {
        debug_assert!(self.state().state() == state::State::Cancelled);
        if self.runs() == Runs::Again {
            return drop(self.wheel_reference());
        }
        // ORDERING: Relaxed, a thread that acts on the mark has acquired this thread's later change
        // of `refs`.
        self.header().bucket.store(Location::REFERENCE_TAKEN.bucket, Ordering::Relaxed);
    }

    /// Returns `true` if this is the only reference.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of a drop, so that this thread sees the work of
        // the former owners.
        self.remaining_refs(self.header().refs.load(Ordering::Acquire)) == 1
    }

    /// Returns the number of references that are left. That is `refs`, or one fewer after a
    /// [`take_over`](Self::take_over).
    #[inline]
    fn remaining_refs(&self, refs: u32) -> u32 {
        // ORDERING: Relaxed, see the module's head.
        refs - u32::from(self.header().bucket.load(Ordering::Relaxed) == Location::REFERENCE_TAKEN.bucket)
    }

    #[cold]
    #[inline(never)]
    fn drop_one_of_many(&mut self) {
        let header = self.header();
        // ORDERING: Acquire, step 1: if this is the last reference, the work of the others comes
        // before the free.
        let mut refs = header.refs.load(Ordering::Acquire);
        while self.remaining_refs(refs) != 1 {
            // ORDERING: AcqRel, because the work of this thread comes before the free. Acquire on
            // failure, as for the load.
            match header.refs.compare_exchange_weak(refs, refs - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => refs = now,
            }
        }
        self.free();
    }

    #[inline]
    fn free(&mut self) {
        let place = self.entry.cast();
        let vtable = self.header().vtable;
        // SAFETY: by invariant 2 the last reference frees the entry. The job was taken out, or
        // leaks because its right was dropped.
        let free = move || unsafe { spare::free(place, vtable.spares, &vtable.layout) };
        #[cfg(all(test, timer_loom))]
        return self.header().memory.end(free);
        #[cfg(not(all(test, timer_loom)))]
        free();
    }

    /// Fetches the entry into the cache of this CPU. Entries that were made at different times are
    /// far apart in memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.prefetch_at(0);
    }

    /// Fetches the cache lines next to that of the state word that the entry may have a part in.
    /// The allocator reads them too when the entry is freed.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        self.prefetch_at(-8);
        self.prefetch_at(40);
    }

    #[inline]
    fn prefetch_at(&self, offset: isize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint that may be given any address.
        unsafe {
            let address = self.entry.as_ptr().cast::<i8>().wrapping_offset(offset);
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address);
        }
        let _ = offset;
    }
}

impl Clone for Timeout {
    #[inline]
    fn clone(&self) -> Self {
        // ORDERING: Relaxed, a new reference is made from an existing one.
        if self.header().refs.fetch_add(1, Ordering::Relaxed) > MAX_REFS {
            std::process::abort();
        }
        Self { entry: self.entry }
    }
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        #[cfg(all(test, timer_loom))]
        if crate::sync::has_failed() {
            return;
        }
        if self.is_last() {
            self.free();
        } else {
            self.drop_one_of_many();
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
