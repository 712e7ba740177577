//! Panics on purpose, in tasks, hooks and drops of captured values.

use std::panic::{set_hook, take_hook};
use std::sync::Once;
use timer_core::{Timeout, TimerTask};

/// The message of a panic on purpose, which the panic hook does not print.
pub(crate) const ON_PURPOSE: &str = "on purpose";

/// Panics without a message on the terminal.
pub(crate) fn panic_on_purpose() -> ! {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = take_hook();
        set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(ON_PURPOSE) {
                default_hook(info);
            }
        }));
    });
    panic!("{ON_PURPOSE}");
}

/// A value that panics when it is dropped.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_on_purpose();
    }
}

/// A task whose hook panics.
pub(crate) struct BadHook;

impl TimerTask for BadHook {
    fn run(self, _: &Timeout) {}

    fn cancelled(self, _: &Timeout) {
        panic_on_purpose();
    }
}
