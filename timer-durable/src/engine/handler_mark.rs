//! Finding out that a handler of a timer is on the stack of a thread.

use crate::message::Message;
use crossbeam_channel::Sender;
use std::cell::RefCell;

thread_local! {
    /// The keepers whose handlers are on the stack of this thread.
    static IN_HANDLER: RefCell<Vec<Sender<Message>>> = const { RefCell::new(Vec::new()) };
}

/// Marks the thread that runs a handler.
pub(crate) struct HandlerMark(pub(super) Sender<Message>);

impl HandlerMark {
    /// Calls a part of the handler.
    pub(crate) fn during<R>(&self, part: impl FnOnce() -> R) -> R {
        IN_HANDLER.with_borrow_mut(|keepers| keepers.push(self.0.clone()));
        let _guard = MarkGuard;
        part()
    }
}

/// Removes the mark, also if the handler panics.
struct MarkGuard;

impl Drop for MarkGuard {
    fn drop(&mut self) {
        // Dropped after the list is no longer borrowed.
        let _keeper = IN_HANDLER.with_borrow_mut(Vec::pop);
    }
}

/// Returns `true` if a handler of this keeper is on the stack of the calling thread.
pub(crate) fn is_in_handler(keeper: &Sender<Message>) -> bool {
    IN_HANDLER.with_borrow(|keepers| keepers.iter().any(|other| other.same_channel(keeper)))
}
