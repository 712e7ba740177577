//! The longest time for which a thread held the lock of a shard. Only the feature `__tests`
//! compiles this module, and it records nothing until a program has set the clock.

use super::{AtomicU64, OnceLock, Ordering};
use std::cell::Cell;

static CLOCK: OnceLock<fn() -> u64> = OnceLock::new();
static LONGEST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SINCE: Cell<u64> = const { Cell::new(0) };
}

/// Records holds from now on, as measured by `clock`.
pub(crate) fn record(clock: fn() -> u64) {
    CLOCK.get_or_init(|| clock);
}

/// Returns the longest hold since the last call.
pub(crate) fn take_longest() -> u64 {
    // ORDERING: Relaxed, because this is only a figure.
    LONGEST.swap(0, Ordering::Relaxed)
}

/// Notes that the calling thread has locked.
pub(super) fn begin() {
    if let Some(clock) = CLOCK.get() {
        SINCE.set(clock());
    }
}

/// Notes that the calling thread is about to unlock.
pub(super) fn end() {
    if let Some(clock) = CLOCK.get() {
        // ORDERING: Relaxed, because this is only a figure.
        LONGEST.fetch_max(clock().saturating_sub(SINCE.get()), Ordering::Relaxed);
    }
}
