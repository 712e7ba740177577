//! Faults, which make a model fail on purpose. A fault weakens one line of the code that ships.

use super::Ordering;
use std::cell::Cell;
use std::panic::Location;
use std::path::Path;

/// The way in which the atomic operation or the bell of a line is weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The operation orders nothing.
    Relaxed,
    /// A read-modify-write becomes a load and a store.
    Split,
    /// A read-modify-write becomes a load. An update becomes a load if it changes nothing.
    Read,
    /// The operation is left out.
    Skip,
}

/// A fault of one line. The line is identified by its file below `src` and a part of its text. If
/// several lines contain that text, a part of an earlier line and ` .. ` precede it.
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
    /// Calls `model` with the fault.
    pub(crate) fn during(self, model: impl FnOnce()) {
        struct Repair;
        impl Drop for Repair {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(self.file);
        // This must not panic, because models that must fail call it.
        let Ok(source) = std::fs::read_to_string(source) else { return eprintln!("no file `{}`", self.file) };
        let mut parts = self.line.split(" .. ");
        let mut lines = source.lines().enumerate();
        let found = parts.try_fold(0, |_, part| lines.find(|(_, text)| text.contains(part)).map(|(at, _)| at));
        let Some(at) = found else { return eprintln!("no line has `{}`", self.line) };
        let _repair = Repair;
        ACTIVE.set(Some(Active { file: self.file, line: at as u32 + 1, how: self.how }));
        model();
    }
}

/// Returns the fault of the line from which the caller of this function was called.
#[track_caller]
pub(crate) fn here() -> Option<How> {
    let active = ACTIVE.get()?;
    let caller = Location::caller();
    (caller.line() == active.line && caller.file().ends_with(active.file)).then_some(active.how)
}

/// Returns the ordering for the line that calls the caller of this function, weakened if that is
/// its fault.
#[track_caller]
pub(super) fn order(order: Ordering) -> Ordering {
    if here() == Some(How::Relaxed) { Ordering::Relaxed } else { order }
}
