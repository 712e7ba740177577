//! Finding out that a handler of a timer is on the stack of a thread.

use crate::TimeoutId;
use crate::message::Message;
use crossbeam_channel::Sender;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The handlers on the stack of this thread.
    static IN_HANDLER: RefCell<Vec<HandlerMark>> = const { RefCell::new(Vec::new()) };
}

/// Marks the thread that runs a handler.
#[derive(Clone)]
pub(crate) struct HandlerMark {
    pub(super) keeper: Sender<Message>,
    pub(super) id: TimeoutId,
    /// The topic and the key of the timeout.
    pub(super) name: Arc<(String, Option<String>)>,
}

impl HandlerMark {
    /// Calls a part of the handler.
    pub(crate) fn during<R>(&self, part: impl FnOnce() -> R) -> R {
        IN_HANDLER.with_borrow_mut(|handlers| handlers.push(self.clone()));
        let _guard = MarkGuard;
        part()
    }
}

/// Removes the mark, also if the handler panics.
struct MarkGuard;

impl Drop for MarkGuard {
    fn drop(&mut self) {
        // Dropped after the list is no longer borrowed.
        let _mark = IN_HANDLER.with_borrow_mut(Vec::pop);
    }
}

/// Returns `true` if a handler of this keeper is on the stack of the calling thread.
pub(crate) fn is_in_handler(keeper: &Sender<Message>) -> bool {
    IN_HANDLER.with_borrow(|handlers| handlers.iter().any(|mark| mark.keeper.same_channel(keeper)))
}

/// Returns the timeout with this topic and key whose handler is on the stack of the calling thread.
pub(crate) fn handled_here(keeper: &Sender<Message>, topic: &str, key: &str) -> Option<TimeoutId> {
    let is_it = |mark: &&HandlerMark| {
        mark.keeper.same_channel(keeper) && mark.name.0 == topic && mark.name.1.as_deref() == Some(key)
    };
    IN_HANDLER.with_borrow(|handlers| handlers.iter().find(is_it).map(|mark| mark.id))
}
