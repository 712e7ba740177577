//! The parts that shuttle lacks: a cell, which is that of `std`, a count of the live allocations,
//! and numbers of threads.

use std::cell::Cell;

/// A cell whose access an adjacent atomic decides. The interface is that of loom.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

pub(crate) fn current_cpu() -> usize {
    super::thread_id().into()
}

thread_local! {
    static ALIVE: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of timeouts that have not been freed. All threads of an execution are one
/// thread of the system.
pub(crate) fn entries_alive() -> usize {
    ALIVE.get()
}

/// A value that is counted while it exists.
#[derive(Debug)]
pub(super) struct Track<T>(#[allow(dead_code, reason = "the shape is loom's")] T);

impl<T> Track<T> {
    pub(super) fn new(value: T) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        Self(value)
    }
}

impl<T> Drop for Track<T> {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}
