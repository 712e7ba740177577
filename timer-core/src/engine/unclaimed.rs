//! The entries that the worker had taken out of a wheel when the timer was stopped.

use crate::entry::Timeout;
use crate::sync::Mutex;

/// Entries that were taken out of a wheel and not decided. They belong to a thread that stops the
/// timer, if one waits for them.
#[derive(Default)]
pub(super) struct Unclaimed(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: Vec<Timeout>,
    /// The number of threads that wait for the entries.
    waited_for: usize,
}

impl Unclaimed {
    /// Lets the calling thread wait for the entries if `waits` returns `true`. No entry is left
    /// during that call.
    pub(super) fn wait_if(&self, waits: impl FnOnce() -> bool) {
        let mut unclaimed = self.0.lock();
        unclaimed.waited_for += usize::from(waits());
    }

    /// Returns the entries. Called by a thread that has waited for the worker, or by the last owner
    /// of the engine.
    pub(super) fn take(&self) -> Vec<Timeout> {
        let mut unclaimed = self.0.lock();
        unclaimed.waited_for = unclaimed.waited_for.saturating_sub(1);
        std::mem::take(&mut unclaimed.entries)
    }

    /// Keeps an entry for a thread that waits. Returns the entry if there is none.
    pub(super) fn leave(&self, timeout: Timeout) -> Option<Timeout> {
        let mut unclaimed = self.0.lock();
        if unclaimed.waited_for == 0 {
            return Some(timeout);
        }
        unclaimed.entries.push(timeout);
        None
    }
}
