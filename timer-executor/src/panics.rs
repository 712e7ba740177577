//! The one place where panics of user code are caught.
//!
//! Code that must survive a panic of a task, of a hook or in the drop of a captured value makes
//! that call through this module. [`catch`] returns however `f` unwinds. The payload is examined
//! and dropped here, so a payload that panics in its own `Drop` does no harm either. Panics that
//! abort end the process, and no library can catch them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f` and returns its result, or the text of the panic that unwinds out of it.
///
/// The panic hook has run before this function returns, so the standard hook prints the panic on
/// stderr as usual. Data that `f` was changing when it panicked remains half changed. Use this
/// around code whose state is not read afterwards.
///
/// In a program built with `panic = "abort"` this function catches no panic. In any build it cannot
/// catch a panic that aborts, such as one that leaves a `Drop` while another panic unwinds.
///
/// The cost is negligible if `f` does not panic.
///
/// # Errors
///
/// Returns the text of the panic if `f` panicked.
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
#[doc(hidden)]
#[inline]
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicMessage> {
    catch_unwind(AssertUnwindSafe(f)).map_err(PanicMessage::from_payload)
}

/// Runs `f` and reports a panic in it as a `tracing` error with the message `event`.
#[doc(hidden)]
pub fn contain(event: &'static str, f: impl FnOnce()) {
    if let Err(message) = catch(f) {
        // A subscriber is user code too. If it panics, no place is left to report to.
        let _ = catch(|| tracing::error!(panic = %message, "{event}"));
    }
}

/// The text of a caught panic, the `&str` or `String` that `panic!` makes.
///
/// Any other payload, such as that of [`std::panic::panic_any`], reads "a panic that is not text".
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
    fn from_payload(payload: Box<dyn Any + Send>) -> Self {
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

/// Drops a payload of an unknown type. It may panic in its `Drop`, and so may the payload of that
/// second panic. That one is leaked.
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
