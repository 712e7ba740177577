//! The one place where a panic of user code is caught.
//!
//! Promises: whatever `f` does by way of unwinding, [`catch`] returns; the payload is taken apart
//! and dropped here, so a payload that panics in its own `Drop` does no harm either. All user code
//! (tasks, hooks, the `Drop` of captures) is run through this file. Absent: aborting panics. Those
//! end the process and no library can catch them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`; a panic that unwinds out of it comes back as an error that bears its text.
///
/// The panic hook has run by then: with the standard hook the panic stands on stderr as usual.
/// Whatever `f` was changing when it panicked stays half changed, so use this around code whose
/// state is not looked at afterwards.
///
/// *Not caught*: panics in a program that is built with `panic = "abort"`, and those that abort in
/// any build, such as a panic that leaves a `Drop` while another panic is unwinding.
///
/// Costs nothing to speak of when `f` does not panic.
///
/// # Errors
///
/// The text of the panic, if `f` panicked.
///
/// # Examples
///
/// ```
/// use timer_executor::panics::catch;
///
/// assert_eq!(catch(|| 6 * 7).ok(), Some(42));
/// let message = catch(|| panic!("no route to host {}", 7)).unwrap_err();
/// assert_eq!(message.to_string(), "no route to host 7");
/// ```
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicMessage> {
    catch_unwind(AssertUnwindSafe(f)).map_err(PanicMessage::of)
}

/// [`catch`] for work without a result: a panic is reported as a `tracing` error, `what` says what
/// happened.
pub fn contain(what: &'static str, f: impl FnOnce()) {
    if let Err(message) = catch(f) {
        // A subscriber is foreign code too; if it panics no place is left to report it to.
        let _ = catch(|| tracing::error!(panic = %message, "{what}"));
    }
}

/// What a caught panic said: the text of a `&str` or `String` payload, as `panic!` makes them.
///
/// Any other payload, as made by [`std::panic::panic_any`], reads "a panic that is not text".
///
/// # Examples
///
/// ```
/// use timer_executor::panics::catch;
///
/// let message = catch(|| std::panic::panic_any(404)).unwrap_err();
/// assert_eq!(message.to_string(), "a panic that is not text");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PanicMessage(Cow<'static, str>);

impl PanicMessage {
    fn of(payload: Box<dyn Any + Send>) -> Self {
        let payload = match payload.downcast::<&'static str>() {
            Ok(text) => return Self(Cow::Borrowed(*text)),
            Err(other) => other,
        };
        match payload.downcast::<String>() {
            Ok(text) => Self(Cow::Owned(*text)),
            Err(other) => {
                drop_payload(other);
                Self(Cow::Borrowed("a panic that is not text"))
            }
        }
    }
}

/// A payload of an unknown type may panic in its `Drop`, and so may the payload of that panic: the
/// second is leaked.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

impl fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PanicMessage").field(&self.0).finish()
    }
}

impl std::error::Error for PanicMessage {}
