//! The entry of a timeout with its job, and the right to the job.
//!
//! This module contains unsafe code. The head of [`super`] lists its invariants. The job is in the
//! entry exactly while no [`TaskRight`] has taken it out. A thread makes a `TaskRight` only after
//! its transition has won the task, and only one per transition.

use super::job::Job;
use super::period::Period;
use super::state::{AtomicState, Cancel, Due};
use super::{Header, ShardId, Timeout, VTable, spare};
use crate::deadline::{Deadline, Nanos};
use crate::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::wheel::Location;
use std::alloc::{Layout, handle_alloc_error};
use std::any::TypeId;
use std::borrow::Borrow;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The place of the job in an entry. The state word decides which thread owns it.
#[repr(transparent)]
struct JobCell<J>(UnsafeCell<ManuallyDrop<J>>);

impl<J> JobCell<J> {
    #[inline]
    fn new(job: J) -> Self {
        Self(UnsafeCell::new(ManuallyDrop::new(job)))
    }
}

/// A timeout and its job.
#[repr(C)]
pub(super) struct Entry<J, S = ()> {
    header: Header,
    job: JobCell<J>,
    /// The part of the job that all threads share.
    shared: S,
}

pub(super) type EntryOf<J> = Entry<J, <J as Job>::Shared>;

#[cfg(all(target_pointer_width = "64", not(all(test, timer_loom))))]
const _: () =
    assert!(size_of::<Header>() == 32 && size_of::<Option<Timeout>>() == 8 && size_of::<Entry<[u64; 1]>>() == 40);

impl VTable {
    #[inline]
    fn of<J: Job>() -> &'static VTable {
        const {
            &VTable {
                runs: J::RUNS,
                layout: Layout::new::<EntryOf<J>>(),
                spares: spare::list_of::<EntryOf<J>>(),
                job: TypeId::of::<J>,
                period: period::<J>,
                name: J::name,
                run: run::<J>,
                cancelled: cancelled::<J>,
            }
        }
    }
}

/// The type of a job.
#[derive(Clone, Copy)]
pub(crate) struct TaskKind(&'static VTable);

impl TaskKind {
    /// Returns the name of the task.
    pub(crate) fn name(self) -> &'static str {
        (self.0.name)()
    }

    /// Returns a number that no other type has. A type may have several, and none is zero.
    #[inline]
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.0).addr()
    }
}

/// # Safety
///
/// As for the table's functions.
#[inline]
unsafe fn take<J>(entry: NonNull<Header>) -> J {
    // SAFETY: the entry is an `Entry<J>` and alive. Only the caller has the right to its job, which
    // is there.
    unsafe { entry.cast::<Entry<J>>().as_ref().job.0.with_mut(|job| ManuallyDrop::take(&mut *job)) }
}

unsafe fn run<J: Job>(entry: NonNull<Header>, timeout: &Timeout) -> Option<Period> {
    // SAFETY: the caller's promise.
    let (job, period) = unsafe { take::<J>(entry) }.run(timeout)?;
    // SAFETY: as above; the place is empty.
    unsafe { entry.cast::<Entry<J>>().as_ref().job.0.with_mut(|place| *place = ManuallyDrop::new(job)) };
    Some(period)
}

unsafe fn period<J: Job>(entry: NonNull<Header>) -> Option<&'static AtomicU64> {
    // SAFETY: the entry is an `EntryOf<J>` and alive. The job is in a cell of its own.
    J::period(unsafe { &entry.cast::<EntryOf<J>>().as_ref().shared })
}

unsafe fn cancelled<J: Job>(entry: NonNull<Header>, timeout: &Timeout) {
    // SAFETY: the caller's promise.
    unsafe { take::<J>(entry) }.cancelled(timeout);
}

/// The right to the job of a timeout. It contains a reference to the timeout, owned or borrowed.
///
/// Every method that takes the right by value uses it up, but [`run`](TaskRight::run) and
/// [`rearm`](TaskRight::rearm) may return it. If a right is dropped instead, the job leaks.
#[must_use]
pub(crate) struct TaskRight<R: Borrow<Timeout>> {
    timeout: R,
    deadline: Deadline,
}

impl<R: Borrow<Timeout>> TaskRight<R> {
    /// Called by the thread whose transition has just won the task.
    #[inline]
    fn new(timeout: R, deadline: Deadline) -> Self {
        Self { timeout, deadline }
    }

    /// Returns the deadline that the entry had when it expired, or [`Deadline::NEVER`] if it was
    /// cancelled.
    #[inline]
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    #[inline]
    pub(crate) fn timeout(&self) -> &Timeout {
        self.timeout.borrow()
    }

    /// Runs the task. Returns the right and the period if the task runs again. If the task unwinds,
    /// the job is gone.
    #[inline]
    pub(crate) fn run(self) -> Option<(Self, Period)> {
        let timeout = self.timeout.borrow();
        // SAFETY: the table is the entry's own; `self` is the right to the job.
        let period = unsafe { (timeout.header().vtable.run)(timeout.entry, timeout) }?;
        Some((self, period))
    }

    /// Gives back a job that runs again, and returns the deadline for which the timeout now waits.
    /// That is `next` unless a `reset` has set another one.
    ///
    /// # Errors
    ///
    /// Returns the right if the timeout was cancelled during the run.
    pub(crate) fn rearm(self, next: Deadline) -> Result<Deadline, Self> {
        self.timeout().state().rearm(next).ok_or(self)
    }

    /// Tells the task that it will not run, and drops it. If that unwinds, the job is gone as well.
    #[inline]
    pub(crate) fn cancelled(self) {
        let timeout = self.timeout.borrow();
        // SAFETY: as in `run`.
        unsafe { (timeout.header().vtable.cancelled)(timeout.entry, timeout) };
    }

    /// Returns the job if it is of this type.
    pub(crate) fn into_job<J: Job>(self) -> Option<J> {
        let timeout = self.timeout.borrow();
        // SAFETY: the entry is an `Entry<J>`, as its table says; `self` is the right to the job.
        ((timeout.header().vtable.job)() == TypeId::of::<J>()).then(|| unsafe { take::<J>(timeout.entry) })
    }
}

impl Timeout {
    /// Allocates an entry that waits for `deadline`. Returns the references of the user and of the
    /// wheel.
    #[inline]
    pub(crate) fn new<J: Job>(shard: ShardId, deadline: Deadline, job: J) -> (Timeout, Timeout) {
        const { assert!(align_of::<EntryOf<J>>() >= align_of::<Header>()) };
        let Some(place) = spare::allocate::<EntryOf<J>>() else { handle_alloc_error(Layout::new::<EntryOf<J>>()) };
        let header = Header {
            state: AtomicState::new(deadline),
            refs: AtomicU32::new(2),
            position: AtomicU32::new(Location::NONE.position),
            vtable: VTable::of::<J>(),
            bucket: AtomicU32::new(Location::NONE.bucket),
            shard,
            #[cfg(all(test, timer_loom))]
            memory: crate::sync::Memory::new(),
        };
        // SAFETY: the place is fresh, aligned and large enough.
        unsafe { place.write(Entry { header, shared: job.shared(), job: JobCell::new(job) }) };
        let entry = place.cast();
        (Timeout { entry }, Timeout { entry })
    }

    #[inline]
    pub(crate) fn kind(&self) -> TaskKind {
        TaskKind(self.header().vtable)
    }

    /// Wins the task of an entry that has left the wheel, if it is due. Called by the owner of the
    /// turn.
    #[inline]
    pub(crate) fn expire(&self, now: Nanos) -> Due<TaskRight<&Timeout>> {
        self.state().expire(now, self.runs()).won(|deadline| TaskRight::new(self, deadline))
    }

    /// Wins the task of a queued entry. Called by the thread that an executor has chosen.
    pub(crate) fn start(&self) -> Option<TaskRight<&Timeout>> {
        self.state().start(self.runs()).map(|deadline| TaskRight::new(self, deadline))
    }

    /// Cancels the timeout. Returns the right to its task as well if it was waiting or queued. A
    /// run in progress keeps the task.
    #[inline]
    pub(crate) fn decide_cancel(&self) -> (Cancel, Option<TaskRight<&Timeout>>) {
        self.prefetch_ends();
        let cancel = self.state().cancel();
        let has_task = matches!(cancel, Cancel::WasWaiting | Cancel::WasUnlinked | Cancel::WasQueued);
        (cancel, has_task.then(|| TaskRight::new(self, Deadline::NEVER)))
    }

    /// Cancels an entry that an executor has dropped unrun, and returns the right to its task.
    /// Returns `None` if it is not queued any more.
    pub(crate) fn cancel_abandoned(self) -> Option<TaskRight<Timeout>> {
        self.state().cancel_abandoned().then(|| TaskRight::new(self, Deadline::NEVER))
    }

    /// Cancels an entry that waits and returns the right to its task. Called if the timer is
    /// stopped.
    pub(crate) fn cancel_by_stop(self) -> Option<TaskRight<Timeout>> {
        self.state().cancel_by_stop().then(|| TaskRight::new(self, Deadline::NEVER))
    }
}
