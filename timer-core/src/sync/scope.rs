//! A value per thread. The guard of [`crate::global::enter`] stores it here and takes it away
//! again.
//!
//! Nothing is shared, so the model checker uses this module as it is.

use super::Arc;
use std::any::Any;
use std::cell::RefCell;

type Value = Option<Arc<dyn Any + Send + Sync>>;

thread_local! {
    static VALUE: RefCell<Value> = const { RefCell::new(None) };
}

/// Returns the value of the calling thread. Returns `None` if there is none, or if the thread is
/// ending.
#[inline]
pub(crate) fn thread_value() -> Value {
    VALUE.try_with(|value| value.borrow().clone()).unwrap_or(None)
}

/// Exchanges the value of the calling thread and returns the former one.
pub(crate) fn swap_thread_value(new: Value) -> Value {
    VALUE.try_with(|value| value.replace(new)).unwrap_or(None)
}
