//! Functions of the user that run in a transaction, on the thread of the keeper.

use crate::error::Error;
use crate::store::{Micros, StoreTransaction};
use crate::time::micros;
use crate::traces::Current;
use crate::transaction::{Operation, Outcome};
use std::any::Any;
use std::fmt;
use std::sync::mpsc;
use std::time::Instant;
use timer_executor::panics;

/// The error of a function of the user.
pub(crate) type WorkError = Box<dyn std::error::Error + Send + Sync>;

/// An open transaction in the store of a timer, see [`DurableTimer::transaction`](crate::DurableTimer::transaction).
///
/// A timeout that is created, cancelled or moved here takes effect with the commit. If a call of
/// this type returns an error, the transaction can go on without that change.
pub struct Transaction<'t> {
    pub(crate) store: &'t mut dyn StoreTransaction,
    pub(crate) connection: Option<&'t dyn Any>,
    /// The time at which the transaction began, on both clocks.
    pub(crate) begun: (Instant, Micros),
    pub(crate) instance: u32,
    /// The operations that were executed.
    pub(crate) executed: Vec<(Operation, Outcome)>,
}

impl<'t> Transaction<'t> {
    /// Returns the connection inside the transaction, or `None` if the store gives none. The crate
    /// of the store knows the type, and its own calls give the connection to the user.
    #[must_use]
    pub fn connection(&self) -> Option<&'t dyn Any> {
        self.connection
    }

    /// Returns the current time on the store's clock.
    pub(crate) fn now(&self) -> Micros {
        let (begun, then) = self.begun;
        self.store.time().unwrap_or_else(|| then.saturating_add(micros(begun.elapsed())))
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("executed", &self.executed).finish_non_exhaustive()
    }
}

/// A value of the user whose drop harms nothing if it panics.
struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    fn new(value: T) -> Self {
        Self(Some(value))
    }

    fn into_inner(mut self) -> T {
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

/// A function of the user that returns `true` if its transaction may be committed.
pub(crate) struct Work(Box<dyn FnOnce(&mut Transaction<'_>) -> bool + Send>);

/// The result of a [`Work`], for its caller.
pub(crate) struct WorkResult<R>(mpsc::Receiver<Contained<Result<R, WorkError>>>);

impl Work {
    pub(crate) fn new<R: Send + 'static>(
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + 'static,
    ) -> (Self, WorkResult<R>) {
        let (sender, result) = mpsc::channel();
        let work = Contained::new(work);
        let caller = Current::of_caller();
        let run = move |transaction: &mut Transaction<'_>| {
            let work = work.into_inner();
            let result = panics::catch(|| caller.during(|| work(transaction)));
            let result = result.unwrap_or_else(|message| Err(format!("the work panicked: {message}").into()));
            let may_commit = result.is_ok();
            // The future of a caller may be gone.
            let _sent = sender.send(Contained::new(result));
            may_commit
        };
        (Self(Box::new(run)), WorkResult(result))
    }

    pub(crate) fn run(self, transaction: &mut Transaction<'_>) -> bool {
        self.0(transaction)
    }
}

impl<R> WorkResult<R> {
    /// Returns the value of the work if the transaction was committed.
    pub(crate) fn of(self, committed: Result<(), Error>) -> Result<R, Error> {
        match (self.0.try_recv().map(Contained::into_inner), committed) {
            (Ok(Err(error)), _) => Err(Error::Work(error)),
            (_, Err(error)) => Err(error),
            (Ok(value), Ok(())) => value.map_err(Error::Work),
            (Err(_), Ok(())) => Err(Error::Stopped),
        }
    }
}
