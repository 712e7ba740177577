//! The right to the job of a timeout, and the table of functions for each type of job.
//!
//! This module contains unsafe code. The head of [`super`] lists its invariants. The job is in the
//! entry exactly while no [`TaskRight`] has taken it out. A thread makes a `TaskRight` only after
//! its transition has won the task, and only one per transition.

use super::job::{Job, Period};
use super::state::Runs;
use super::{Entry, EntryOf, Header, Timeout, spare};
use crate::deadline::Deadline;
use crate::sync::{AtomicU64, UnsafeCell};
use std::alloc::Layout;
use std::any::TypeId;
use std::borrow::Borrow;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The place of the job in an entry. The state word decides which thread owns it.
#[repr(transparent)]
pub(super) struct JobCell<J>(UnsafeCell<ManuallyDrop<J>>);

impl<J> JobCell<J> {
    #[inline]
    pub(super) fn new(job: J) -> Self {
        Self(UnsafeCell::new(ManuallyDrop::new(job)))
    }
}

/// The properties of a job type.
pub(super) struct VTable {
    pub(super) runs: Runs,
    pub(super) layout: Layout,
    /// The index of the list that keeps the memory of an ended entry.
    pub(super) spares: usize,
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
    pub(super) period: unsafe fn(NonNull<Header>) -> Option<&'static AtomicU64>,
    /// Takes the job out and tells it that it will not run.
    cancelled: unsafe fn(NonNull<Header>, &Timeout),
}

impl VTable {
    #[inline]
    pub(super) fn of<J: Job>() -> &'static VTable {
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
pub(crate) struct TaskKind(pub(super) &'static VTable);

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
    pub(super) fn new(timeout: R, deadline: Deadline) -> Self {
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
