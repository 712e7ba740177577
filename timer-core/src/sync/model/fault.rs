//! What is wrong on purpose in a model that must fail: one line of the code that ships, and in which way.

use super::Ordering;
use std::cell::Cell;
use std::panic::Location;
use std::path::Path;

/// What is wrong with the atomic operation, or the bell, of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It orders nothing.
    Relaxed,
    /// A read-modify-write is a load and a store.
    Split,
    /// A read-modify-write reads only; of an update: if there is nothing to change.
    Read,
    /// It is left out.
    Skip,
}

/// A line, by a file below `src` and a part of its text. If that stands in several lines: after a part of an earlier line and ` .. `.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) file: &'static str,
    pub(crate) line: &'static str,
    pub(crate) how: How,
}

#[derive(Clone, Copy)]
struct Active {
    file: &'static str,
    line: u32,
    how: How,
}

thread_local! {
    static ACTIVE: Cell<Option<Active>> = const { Cell::new(None) };
}

impl Fault {
    /// Calls `model` with the fault in.
    pub(crate) fn during(self, model: impl FnOnce()) {
        struct Repair;
        impl Drop for Repair {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(self.file);
        let source = std::fs::read_to_string(source).expect("the file of a fault");
        let mut parts = self.line.split(" .. ");
        let mut lines = source.lines().enumerate();
        let found = parts.try_fold(0, |_, part| lines.find(|(_, text)| text.contains(part)).map(|(at, _)| at));
        // No panic: this is called by models that must fail.
        let Some(at) = found else { return eprintln!("no line has `{}`", self.line) };
        let _repair = Repair;
        ACTIVE.set(Some(Active { file: self.file, line: at as u32 + 1, how: self.how }));
        model();
    }
}

/// What is wrong with the line that calls the caller of this.
#[track_caller]
pub(crate) fn here() -> Option<How> {
    let active = ACTIVE.get()?;
    let caller = Location::caller();
    (caller.line() == active.line && caller.file().ends_with(active.file)).then_some(active.how)
}

/// The order of the line that calls the caller of this, weaker if that is wrong with it.
#[track_caller]
pub(super) fn order(order: Ordering) -> Ordering {
    if here() == Some(How::Relaxed) { Ordering::Relaxed } else { order }
}
