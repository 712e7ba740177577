//! One timeout: an entry on the heap, and the counted references to it.
//!
//! ```text
//!  0       8      12         16        24       28      30           32
//! +-------+------+----------+---------+--------+-------+------------+---------
//! | state | refs | position | vtable  | bucket | shard | generation | the job
//! +-------+------+----------+---------+--------+-------+------------+---------
//! ```
//!
//! Ground rules:
//! - The **state word** is every thread's, by the transitions of [`state`] only.
//! - The **job** (the task, and what it captured) belongs to the thread that won it by a transition: [`Owned`]. It is called and
//!   dropped with nothing held.
//! - The **location** (bucket and position) is written by the holder of the shard's lock.
//! - The **shard** and its generation never change. An entry knows them as numbers, not as a type.
//! - A **reference** is a [`Timeout`], be it the user's, a wheel's, a request's or a turn's. All are counted in `refs`.
//!
//! *The wheel's reference.* A timeout that is cancelled leaves its wheel, whose reference is not counted down, which would be a
//! read-modify-write, but handed over: the canceller stores [`Location::HANDED_OVER`] ([`Timeout::take_over`]). References left are
//! `refs` less one then. The last reference is dropped by loads alone ([`Timeout`]'s `Drop`):
//!
//! 1. load `refs` (Acquire), then the mark; if what is left is 1, the entry is freed;
//! 2. else a compare-and-swap takes one off `refs`; if it fails, begin again.
//!
//! Why that is right: `refs` changes only by read-modify-writes. The mark is set at most once, by a canceller that holds a counted
//! reference of its own, when the state is `Cancelled`, which is for good: nothing links the entry again. A thread that drops and
//! reads the mark too early sees `refs` of 3 or more (its own, the canceller's, the wheel's), so a real reference remains after
//! its swap. If it sees 2 after the canceller has dropped its own, the Acquire makes the mark visible, since the canceller's swap
//! came after it. If it sees 2 while the wheel's is real, it takes one off, and the wheel's remains. After a swap that was not the
//! last, a thread never touches the entry.
//!
//! One of two modules with unsafe code. What it must uphold: (1) a pointer in a `Timeout` is that of an allocation made by
//! [`Timeout::new`], alive while a counted reference is; (2) it is freed once, with the layout of its vtable; (3) the job is there
//! exactly while no [`Owned`] has taken it (a future's [`Claim`] may put another in), and only the one `Owned` or `Claim` reaches it.

mod job;
mod owned;
pub(crate) mod state;

pub use job::TimerTask;
pub(crate) use job::{Closure, Hooked, Job, Period, Periodic, Wakeup, period_nanos};
pub(crate) use owned::{Claim, Owned};

use crate::sync::{AtomicU32, Ordering};
use crate::time::{Deadline, Nanos};
use crate::wheel::{Location, Tracker};
use owned::VTable;
use state::{AtomicState, Cancel, Due, Runs};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::hash::{Hash, Hasher};
use std::ptr::NonNull;

/// More references than a program can hold: something leaks them, and a count that wrapped would free what is in use.
const MAX_REFS: u32 = i32::MAX as u32;

/// What all entries share, whatever they run.
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

/// One timeout and its job.
#[repr(C)]
struct Entry<J> {
    header: Header,
    job: owned::Slot<J>,
}

#[cfg(all(target_pointer_width = "64", not(all(test, timer_loom))))]
const _: () =
    assert!(size_of::<Header>() == 32 && size_of::<Option<Timeout>>() == 8 && size_of::<Entry<[u64; 1]>>() == 40);

/// Names a shard for as long as it serves one timer: the generation is another for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardId {
    pub(crate) index: u16,
    pub(crate) generation: u16,
}

/// One accepted timeout. A handle, as wide as a pointer: clones are the same timeout, and dropping all of them does **not** cancel
/// it. Handles are equal, and hash the same, if they are of the same timeout.
///
/// All methods may be called from any thread, at any time, also from inside tasks and after the timer is gone.
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
pub struct Timeout {
    entry: NonNull<Header>,
}

// SAFETY: what a reference reaches are atomics, constants, and the job by way of the one `Owned`; jobs are `Send`.
unsafe impl Send for Timeout {}
// SAFETY: as above.
unsafe impl Sync for Timeout {}

impl Timeout {
    /// A new entry that waits for `deadline`, as two references: the user's and the wheel's.
    #[inline]
    pub(crate) fn new<J: Job>(shard: ShardId, deadline: Deadline, job: J) -> (Timeout, Timeout) {
        const { assert!(align_of::<Entry<J>>() >= align_of::<Header>()) };
        let layout = Layout::new::<Entry<J>>();
        // SAFETY: the layout has a size, that of the header at least.
        let Some(place) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        let place = place.cast::<Entry<J>>();
        let header = Header {
            state: AtomicState::new(deadline),
            refs: AtomicU32::new(2),
            position: AtomicU32::new(Location::NONE.position()),
            vtable: VTable::of::<J>(),
            bucket: AtomicU32::new(Location::NONE.bucket()),
            shard,
            #[cfg(all(test, timer_loom))]
            memory: crate::sync::Memory::new(),
        };
        // SAFETY: the place is fresh, aligned and large enough.
        unsafe { place.write(Entry { header, job: owned::Slot::new(job) }) };
        let entry = place.cast();
        (Timeout { entry }, Timeout { entry })
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: (1) in the module's head: alive while this reference is; nothing makes an exclusive reference to a header.
        let header = unsafe { self.entry.as_ref() };
        #[cfg(all(test, timer_loom))]
        header.memory.assert_in_use();
        header
    }

    /// The state word: what it says, and the transitions that win no task.
    #[inline]
    pub(crate) fn state(&self) -> &AtomicState {
        &self.header().state
    }

    /// The shard in whose wheel it waits.
    #[inline]
    pub(crate) fn shard_id(&self) -> ShardId {
        self.header().shard
    }

    #[inline]
    pub(crate) fn runs(&self) -> Runs {
        self.header().vtable.runs
    }

    /// Names it among all that live.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.entry.addr().get()
    }

    /// Where it is linked, or was last. For the holder of the shard's lock.
    #[inline]
    pub(crate) fn location(&self) -> Location {
        let header = self.header();
        // ORDERING: Relaxed, only holders of the lock write it, and locks hand over with release and acquire.
        Location::new(header.bucket.load(Ordering::Relaxed), header.position.load(Ordering::Relaxed))
    }

    /// For the canceller, that holds the shard's lock and has taken `linked`, the wheel's reference, out of the wheel: it will not
    /// be counted any more. The state is `Cancelled`.
    #[inline]
    pub(crate) fn take_over(&self, linked: Timeout) {
        debug_assert!(*self == linked && self.state().state() == state::State::Cancelled);
        std::mem::forget(linked);
        // ORDERING: Relaxed, a thread that acts on it has acquired this thread's later change of `refs`.
        self.header().bucket.store(Location::HANDED_OVER.bucket(), Ordering::Relaxed);
    }

    /// Whether this is the only reference.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        // ORDERING: Acquire, pairs with the Release of a drop: what the others did comes before.
        self.left(self.header().refs.load(Ordering::Acquire)) == 1
    }

    /// References left if `refs` are counted.
    #[inline]
    fn left(&self, refs: u32) -> u32 {
        // ORDERING: Relaxed, as said in the module's head.
        refs - u32::from(self.header().bucket.load(Ordering::Relaxed) == Location::HANDED_OVER.bucket())
    }

    #[cold]
    #[inline(never)]
    fn drop_one_of_many(&mut self) {
        let header = self.header();
        // ORDERING: Acquire, step 1: if it turns out to be the last, all that others did comes before.
        let mut refs = header.refs.load(Ordering::Acquire);
        while self.left(refs) != 1 {
            // ORDERING: AcqRel: what this thread did comes before the free; Acquire on failure as for the load above.
            match header.refs.compare_exchange_weak(refs, refs - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => refs = now,
            }
        }
        self.free();
    }

    #[inline]
    fn free(&mut self) {
        let layout = self.header().vtable.layout;
        #[cfg(all(test, timer_loom))]
        {
            let place = self.entry.as_ptr().cast();
            // SAFETY: as below.
            return self.header().memory.end(move || unsafe { dealloc(place, layout) });
        }
        #[cfg(not(all(test, timer_loom)))]
        // SAFETY: (2) in the module's head: the last reference frees it. The job is gone, or leaked if an end of it unwound.
        unsafe {
            dealloc(self.entry.as_ptr().cast(), layout)
        };
    }

    /// Fetches the entry into the cache of this CPU: what was scheduled at different times lies all over the memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint; it reads nothing and may be given any address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(self.entry.as_ptr().cast());
        }
    }

    /// For the owner of the turn that runs tasks itself: wins an entry that has left the wheel, if it is due.
    #[inline]
    pub(crate) fn expire(&self, now: Nanos) -> Due<Owned<&Timeout>> {
        self.state().expire(now, self.runs()).won(|deadline| Owned::new(self, deadline))
    }

    /// For the thread that an executor has chosen, once for each hand-over: wins the task, if it is due.
    pub(crate) fn start(&self, now: Nanos) -> Due<Owned<&Timeout>> {
        self.state().start(now, self.runs()).won(|deadline| Owned::new(self, deadline))
    }

    /// Cancels: what was won, and the task unless a run that goes on has it.
    #[inline]
    pub(crate) fn win_cancel(&self) -> (Cancel, Option<Owned<&Timeout>>) {
        let cancel = self.state().cancel();
        let owned = matches!(cancel, Cancel::Waiting | Cancel::Queued);
        (cancel, owned.then(|| Owned::new(self, Deadline::NEVER)))
    }

    /// Cancels an entry that an executor has dropped unrun, and returns the right to its task. Returns `None` if it was
    /// cancelled before.
    pub(crate) fn cancel_queued(self) -> Option<Owned<Timeout>> {
        let is_won = matches!(self.state().cancel(), Cancel::Queued);
        is_won.then(|| Owned::new(self, Deadline::NEVER))
    }

    /// For `stop`: ends what waits, and hands on the right to its task.
    pub(crate) fn cancel_by_stop(self) -> Result<Owned<Timeout>, Timeout> {
        if self.state().cancel_by_stop() { Ok(Owned::new(self, Deadline::NEVER)) } else { Err(self) }
    }
}

impl Clone for Timeout {
    #[inline]
    fn clone(&self) -> Self {
        // ORDERING: Relaxed, a new reference comes from one that exists.
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

impl PartialEq for Timeout {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

impl Eq for Timeout {}

impl Hash for Timeout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entry.hash(state);
    }
}

/// Entries remember their locations themselves.
#[derive(Debug, Default)]
pub(crate) struct InEntry;

impl Tracker<Timeout> for InEntry {
    #[inline]
    fn moved(&mut self, timeout: &Timeout, location: Location) {
        let header = timeout.header();
        // ORDERING: Relaxed, as in `Timeout::location`: the holder of the shard's lock writes.
        header.bucket.store(location.bucket(), Ordering::Relaxed);
        header.position.store(location.position(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
