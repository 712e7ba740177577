//! Tokio's own futures, for a runtime whose clock is not that of the system.
//!
//! Such a runtime was built by other code, for example by tokio's attribute in a file that does not
//! import [`tokio`](crate::tokio), or by a simulation. No timer of this workspace follows its
//! clock, so the functions of [`time`](super::time) use tokio's timer there.
//!
//! Only a program with the feature `test-util` of tokio can have such a clock. Reading two clocks
//! for each future would double its cost, so a program without the feature `tokio` of this crate
//! reads them only if it has debug assertions, as tests usually do.

use core::panic::AssertUnwindSafe;
#[cfg(any(feature = "tokio", debug_assertions))]
use std::time::Instant;

/// A future of tokio, if one replaces ours. `AssertUnwindSafe` gives our futures the same auto
/// traits in all builds.
#[cfg(any(feature = "tokio", debug_assertions))]
#[derive(Debug)]
pub(super) struct Theirs<T>(Option<AssertUnwindSafe<T>>);

/// No future, because the program does not look at the clocks.
#[cfg(not(any(feature = "tokio", debug_assertions)))]
#[derive(Debug)]
pub(super) struct Theirs<T>(core::marker::PhantomData<AssertUnwindSafe<T>>);

#[cfg(any(feature = "tokio", debug_assertions))]
impl<T> Theirs<T> {
    /// Makes tokio's future if the current runtime has a clock that only tokio's timer follows.
    pub(super) fn make(make: impl FnOnce() -> T) -> Self {
        #[cfg(feature = "tokio")]
        let is_followed = super::follower::with_follower(|_| ()).is_some();
        #[cfg(not(feature = "tokio"))]
        let is_followed = false;
        let is_needed = !is_followed && !is_systems_clock();
        Self(is_needed.then(|| AssertUnwindSafe(make())))
    }

    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

#[cfg(not(any(feature = "tokio", debug_assertions)))]
impl<T> Theirs<T> {
    #[inline]
    pub(super) fn make(_: impl FnOnce() -> T) -> Self {
        Self(core::marker::PhantomData)
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&T> {
        None
    }

    #[inline]
    pub(super) fn get_mut(&mut self) -> Option<&mut T> {
        None
    }
}

/// Returns `true` if tokio's clock is the system's, as it is outside of a runtime and unless a
/// program has stopped it.
#[cfg(any(feature = "tokio", debug_assertions))]
fn is_systems_clock() -> bool {
    let before = Instant::now();
    // A clock that was stopped just now stands at `before`.
    while Instant::now() == before {}
    let theirs = ::tokio::time::Instant::now().into_std();
    before < theirs && theirs <= Instant::now()
}
