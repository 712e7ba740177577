//! Publishing the figures of a keeper.

use super::Keeper;
use crate::TimeoutId;
use crate::store::Store;

impl<S: Store> Keeper<S> {
    /// Returns the number of pending timeouts, of which the store has counted `pending`. The memory
    /// may have more of them. After a rejoin it has the running ones twice.
    fn known_pending(&self, pending: u64, in_memory: usize, running: usize) -> u64 {
        if (in_memory + running) as u64 <= pending {
            return pending;
        }
        let in_no_head = |id: &&TimeoutId| self.overdue.due_of(**id).or(self.current.due_of(**id)).is_none();
        pending.max((in_memory + self.running.keys().filter(in_no_head).count()) as u64)
    }

    pub(super) fn publish(&self) {
        let in_memory = self.overdue.len() + self.current.len();
        let running = self.running.len();
        self.figures.lock().in_memory = in_memory as u64;
        self.figures.lock().running = running as u64;
        self.figures.lock().due = (self.overdue.due_len() + self.current.due_len()) as u64;
        // The store's number may be older than the memory.
        let at_least = |pending| self.known_pending(pending, in_memory, running);
        self.figures.lock().pending = self.store.pending().map(at_least);
    }

    /// Publishes which topics are paused.
    pub(super) fn publish_pauses(&self) {
        let mut stats = self.figures.lock();
        stats.topics.values_mut().for_each(|topic| topic.is_paused = false);
        self.gates.paused().for_each(|name| stats.change_topic(name, |topic| topic.is_paused = true));
    }
}
