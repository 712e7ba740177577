//! Functions of the user that run in a transaction, on the thread of the keeper.

use std::any::{Any, type_name};
use std::error::Error;
use timer_executor::panics;

/// The error of a function of the user.
pub(crate) type WorkError = Box<dyn Error + Send + Sync>;

/// A value of the user whose drop harms nothing if it panics.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        match self.0.take() {
            Some(value) => value,
            None => unreachable!("only this function and `drop` take the value"),
        }
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            panics::contain("a value of the user panicked while it was dropped", || drop(value));
        }
    }
}

/// Returns a function that calls `work` with a connection of the type `C`. Another connection and a
/// panic of `work` become errors, which roll back the transaction.
///
/// The error of `work` becomes a text at once, because a panic in its `Display` would end the
/// keeper later. The drop of work that is not run may panic, too.
pub(crate) fn on_connection<C: Any, R>(
    work: impl FnOnce(&mut C) -> Result<R, WorkError>,
) -> impl FnOnce(&mut dyn Any) -> Result<R, WorkError> {
    let work = Contained::new(work);
    move |connection| match connection.downcast_mut::<C>() {
        Some(connection) => {
            let work = work.into_inner();
            let result = panics::catch(|| work(connection).map_err(|error| error.to_string()));
            let result = result.unwrap_or_else(|message| Err(format!("the work panicked: {message}")));
            result.map_err(WorkError::from)
        }
        None => Err(format!("the connection of this store is not a {}", type_name::<C>()).into()),
    }
}
