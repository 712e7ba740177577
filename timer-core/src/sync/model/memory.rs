//! The ends of allocations for the checker. A use after the end, a second end, or a missing end
//! fails the model.

use super::{UnsafeCell, has_failed};
use loom::alloc::Track;
use std::cell::RefCell;
use std::sync::Mutex as StdMutex;

thread_local! {
    /// The allocations that were freed in this execution.
    static FREED: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// An allocation for the checker. Every use of it is a read of a cell, and its end is a write. It
/// must have an end.
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

    /// Ends the allocation. `free` is called after the execution, so that the checker sees every
    /// earlier use.
    pub(crate) fn end(&self, free: impl FnOnce() + 'static) {
        self.in_use.with_mut(|_| ());
        let track = self.leak.lock().unwrap().take();
        assert!(has_failed() || track.is_some(), "freed twice");
        FREED.with_borrow_mut(|freed| freed.push(Box::new(free)));
    }

    /// Frees the allocations that have ended in earlier executions.
    pub(crate) fn free_all() {
        FREED.take().into_iter().for_each(|free| free());
    }
}
