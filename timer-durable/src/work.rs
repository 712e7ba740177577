//! Functions of the user that run in a transaction, on the thread of the keeper.

use std::any::{Any, type_name};
use std::error::Error;
use timer_executor::panics;

/// The error of a function of the user.
pub(crate) type WorkError = Box<dyn Error + Send + Sync>;

/// Returns a function that calls `work` with a connection of the type `C`. Another connection and a
/// panic of `work` become errors, which roll back the transaction.
pub(crate) fn on_connection<C: Any, R>(
    work: impl FnOnce(&mut C) -> Result<R, WorkError>,
) -> impl FnOnce(&mut dyn Any) -> Result<R, WorkError> {
    move |connection| match connection.downcast_mut::<C>() {
        Some(connection) => panics::catch(|| work(connection))
            .unwrap_or_else(|message| Err(format!("the work panicked: {message}").into())),
        None => Err(format!("the connection of this store is not a {}", type_name::<C>()).into()),
    }
}
