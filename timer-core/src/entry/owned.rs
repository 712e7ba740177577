//! The right to a timeout's job, and the table by which a job of any type is reached.
//!
//! Unsafe code, see the head of [`super`]: the job is there exactly while no [`Owned`] has taken it out, and an `Owned` is made only
//! by the thread whose transition won the task, once for each such transition.

use super::job::{Job, Period};
use super::state::{Rearm, Runs, State};
use super::{Entry, Header, Timeout};
use crate::sync::UnsafeCell;
use crate::time::Deadline;
use std::alloc::Layout;
use std::any::TypeId;
use std::borrow::Borrow;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Where an entry keeps its job. The state word says whose it is.
#[repr(transparent)]
pub(super) struct Slot<J>(UnsafeCell<ManuallyDrop<J>>);

impl<J> Slot<J> {
    #[inline]
    pub(super) fn new(job: J) -> Self {
        Self(UnsafeCell::new(ManuallyDrop::new(job)))
    }
}

/// What differs from job to job.
pub(super) struct VTable {
    pub(super) runs: Runs,
    pub(super) layout: Layout,
    job: fn() -> TypeId,
    /// Takes the job and runs it; `Some`: it is back, and runs again.
    ///
    /// # Safety
    ///
    /// Of all of these: the entry is of this table's type, the caller alone has the right to its job, and the job is there.
    run: unsafe fn(NonNull<Header>, &Timeout) -> Option<Period>,
    /// Takes the job and tells it that it will not run.
    cancelled: unsafe fn(NonNull<Header>, &Timeout),
    /// Takes the job and drops it.
    discard: unsafe fn(NonNull<Header>),
}

impl VTable {
    #[inline]
    pub(super) fn of<J: Job>() -> &'static VTable {
        const {
            &VTable {
                runs: J::RUNS,
                layout: Layout::new::<Entry<J>>(),
                job: TypeId::of::<J>,
                run: run::<J>,
                cancelled: cancelled::<J>,
                discard: discard::<J>,
            }
        }
    }
}

/// # Safety
///
/// As for the table's functions.
#[inline]
unsafe fn take<J>(entry: NonNull<Header>) -> J {
    // SAFETY: the entry is an `Entry<J>`, alive; the caller alone has the right to its job, which is there, and takes it out.
    unsafe { entry.cast::<Entry<J>>().as_ref().job.0.with_mut(|job| ManuallyDrop::take(&mut *job)) }
}

unsafe fn run<J: Job>(entry: NonNull<Header>, timeout: &Timeout) -> Option<Period> {
    // SAFETY: the caller's promise.
    let (job, period) = unsafe { take::<J>(entry) }.run(timeout)?;
    // SAFETY: as above; the place is empty.
    unsafe { entry.cast::<Entry<J>>().as_ref().job.0.with_mut(|place| *place = ManuallyDrop::new(job)) };
    Some(period)
}

unsafe fn cancelled<J: Job>(entry: NonNull<Header>, timeout: &Timeout) {
    // SAFETY: the caller's promise.
    unsafe { take::<J>(entry) }.cancelled(timeout);
}

unsafe fn discard<J: Job>(entry: NonNull<Header>) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<J>(entry) });
}

/// The right to a timeout's job, through a reference of its own or a borrowed one. Each method but [`rearm`](Owned::rearm) uses it
/// up; one that is dropped leaks the job.
#[must_use]
pub(crate) struct Owned<R: Borrow<Timeout>> {
    timeout: R,
    deadline: Deadline,
}

impl<R: Borrow<Timeout>> Owned<R> {
    /// For the thread whose transition has just won.
    #[inline]
    pub(super) fn new(timeout: R, deadline: Deadline) -> Self {
        Self { timeout, deadline }
    }

    /// Under which it was won by an expiry.
    #[inline]
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    #[inline]
    pub(crate) fn timeout(&self) -> &Timeout {
        self.timeout.borrow()
    }

    /// Runs the task. `Some`: it runs again, after this period. If it unwinds, the job is gone.
    #[inline]
    pub(crate) fn run(self) -> Option<(Self, Period)> {
        let timeout = self.timeout.borrow();
        // SAFETY: the table is the entry's own; `self` is the right to the job.
        let period = unsafe { (timeout.header().vtable.run)(timeout.entry, timeout) }?;
        Some((self, period))
    }

    /// Gives back a job that runs again; the timeout waits for `next` unless `reset` has said otherwise. `Err`: it was cancelled during
    /// the run.
    pub(crate) fn rearm(self, next: Deadline) -> Result<Deadline, Self> {
        match self.timeout().state().rearm(next) {
            Rearm::Waiting(deadline) => Ok(deadline),
            Rearm::Cancelled => Err(self),
        }
    }

    /// Tells the task that it will not run, and drops it. May unwind; the job is gone then, too.
    #[inline]
    pub(crate) fn cancelled(self) {
        let timeout = self.timeout.borrow();
        // SAFETY: as in `run`.
        unsafe { (timeout.header().vtable.cancelled)(timeout.entry, timeout) };
    }

    /// Drops the job. May unwind; it is gone then, too.
    pub(crate) fn discard(self) {
        let timeout = self.timeout.borrow();
        // SAFETY: as in `run`.
        unsafe { (timeout.header().vtable.discard)(timeout.entry) };
    }

    /// The job itself, if it is of this type.
    pub(crate) fn into_job<J: Job>(self) -> Option<J> {
        let timeout = self.timeout.borrow();
        // SAFETY: the entry is an `Entry<J>`, as its table says; `self` is the right to the job.
        ((timeout.header().vtable.job)() == TypeId::of::<J>()).then(|| unsafe { take::<J>(timeout.entry) })
    }
}

/// The right to the job of an entry that a future claims ([`claim`](super::state::AtomicState::claim)): the entry neither expires nor
/// ends meanwhile. End it by [`release`](super::state::AtomicState::release), with a job in place, or by [`take_back`](Self::take_back);
/// one that is dropped leaves an entry that never expires.
#[must_use]
pub(crate) struct Claim<'a> {
    timeout: &'a Timeout,
    waited: bool,
    /// Whether the job is there.
    full: bool,
}

impl<'a> Claim<'a> {
    /// For an entry that waits, or has run: with this deadline from now on.
    pub(crate) fn new(timeout: &'a Timeout, deadline: Deadline) -> Result<Self, State> {
        debug_assert!(timeout.runs() == Runs::Wake);
        timeout.state().claim(deadline).map(|waited| Self { timeout, waited, full: waited })
    }

    /// Whether it waited before, and so has not run.
    pub(crate) fn was_waiting(&self) -> bool {
        self.waited
    }

    /// Puts a job in. The one that was there, if any.
    pub(crate) fn put<J: Job>(&mut self, job: J) -> Option<J> {
        let former = self.take();
        if self.is_of::<J>() {
            let entry = self.timeout.entry.cast::<Entry<J>>();
            // SAFETY: the entry is an `Entry<J>`, as its table says; `self` is the right to the job, and the place is empty.
            unsafe { entry.as_ref().job.0.with_mut(|place| *place = ManuallyDrop::new(job)) };
            self.full = true;
        }
        former
    }

    /// Takes the job out, if it is there and of this type.
    fn take<J: Job>(&mut self) -> Option<J> {
        if !self.full || !self.is_of::<J>() {
            return None;
        }
        self.full = false;
        // SAFETY: the entry is an `Entry<J>`, as its table says; `self` is the right to the job, which was there.
        Some(unsafe { take::<J>(self.timeout.entry) })
    }

    /// It has ended by running, as before; the job comes back.
    pub(crate) fn take_back<J: Job>(mut self) -> Option<J> {
        let job = self.take();
        self.timeout.state().fail();
        self.timeout.state().end_run();
        job
    }

    fn is_of<J: Job>(&self) -> bool {
        (self.timeout.header().vtable.job)() == TypeId::of::<J>()
    }
}
