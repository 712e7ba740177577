//! The end of allocations, as the checker sees it: a use after it, a second one, or none at all fail the model.

use super::{StdMutex, UnsafeCell, has_failed};
use std::cell::RefCell;

#[cfg(timer_shuttle)]
use super::parts::Track;
#[cfg(not(timer_shuttle))]
use loom::alloc::Track;

thread_local! {
    /// What was freed in this execution.
    static FREED: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// An allocation as the checker sees it: every use of it is a read of a cell, its end is a write, and it must end.
#[derive(Debug)]
pub(crate) struct Memory {
    in_use: UnsafeCell<()>,
    leak: StdMutex<Option<Track<()>>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { in_use: UnsafeCell::new(()), leak: StdMutex::new(Some(Track::new(()))) }
    }

    pub(crate) fn assert_in_use(&self) {
        self.in_use.with(|_| ());
        assert!(has_failed() || self.leak.lock().unwrap().is_some(), "used after it was freed");
    }

    /// `free` is called when the execution is over: until then a use would be seen.
    pub(crate) fn end(&self, free: impl FnOnce() + 'static) {
        self.in_use.with_mut(|_| ());
        let track = self.leak.lock().unwrap().take();
        assert!(has_failed() || track.is_some(), "freed twice");
        FREED.with_borrow_mut(|freed| freed.push(Box::new(free)));
    }

    /// Frees what has ended in the executions before.
    pub(crate) fn free_all() {
        FREED.take().into_iter().for_each(|free| free());
    }
}
