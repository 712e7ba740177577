//! The engine, that is, the keeper with its memory, and its connection to handlers.
//!
//! Callers and handlers send [messages](crate::message) to one thread, the [`keeper`]. It owns the
//! store and the memory, so neither has a lock. A caller waits for the answer on its own channel.

mod attempt;
mod attempts;
mod executors;
mod failures;
mod handler_mark;
mod id_map;
mod keeper;
mod queue;
mod record;
mod settings;
mod stopping;
mod term;
mod timeline;
mod unwritten;

pub(crate) use attempt::{Handler, Settle, Started, TopicSettings};
pub(crate) use handler_mark::{handled_here, is_in_handler};
pub(crate) use keeper::{Flow, Keeper};
pub(crate) use settings::{Settings, THREADS};
pub(crate) use unwritten::{answer_of, insert};

use std::cell::Cell;

thread_local! {
    static IS_KEEPER: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` on the thread of a keeper, where a blocking call would wait for itself.
pub(crate) fn is_keeper() -> bool {
    IS_KEEPER.get()
}

/// Calls `body` on a thread that counts as a keeper during the call.
pub(crate) fn as_keeper<R>(body: impl FnOnce() -> R) -> R {
    let before = IS_KEEPER.replace(true);
    let result = body();
    IS_KEEPER.set(before);
    result
}
