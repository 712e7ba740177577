//! The way back to a caller.

use super::Answer;
use crate::TimeoutId;
use crate::error::Error;
use crate::store::StoreError;
use timer_executor::panics;

/// The channel for the answer to a call.
///
/// A caller whose reply is dropped finds the timer stopped, because the keeper drops only calls
/// that it has not executed. If the keeper panics while it executes a call, the caller learns that
/// the outcome is unknown.
pub(crate) struct Reply<T = Answer, E: From<Error> = Error> {
    sender: Option<oneshot::Sender<Result<T, E>>>,
    id: Option<TimeoutId>,
}

impl<T, E: From<Error>> Reply<T, E> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (sender, answer) = oneshot::channel();
        (Self { sender: Some(sender), id: None }, answer)
    }

    /// Notes the id of the timeout that the call creates.
    pub(super) fn about(mut self, id: Option<TimeoutId>) -> Self {
        self.id = id;
        self
    }

    /// Tells the caller that the commit has failed.
    pub(super) fn fail(self, error: &StoreError) {
        let error = match error {
            StoreError::InDoubt(why) => Error::OutcomeUnknown { id: self.id, why: why.clone() },
            error => Error::Store(error.clone()),
        };
        self.send(Err(E::from(error)));
    }

    pub(crate) fn send(mut self, answer: Result<T, E>) {
        if let Some(sender) = self.sender.take() {
            send(sender, answer);
        }
    }
}

impl<T, E: From<Error>> Drop for Reply<T, E> {
    fn drop(&mut self) {
        let Some(sender) = self.sender.take() else { return };
        if std::thread::panicking() {
            let why = "the keeper has panicked".to_owned();
            send(sender, Err(E::from(Error::OutcomeUnknown { id: self.id, why })));
        } else {
            contain(|| drop(sender));
        }
    }
}

fn send<T, E>(sender: oneshot::Sender<Result<T, E>>, answer: Result<T, E>) {
    // A caller that is gone does not need the answer.
    contain(|| _ = sender.send(answer));
}

/// Calls a function that wakes a caller, whose waker is code of the user.
fn contain(wake: impl FnOnce()) {
    panics::contain("the waker of a caller panicked", wake);
}
