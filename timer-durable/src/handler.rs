//! Handlers, the user's functions behind one signature for all payloads.

use crate::done::Done;
use crate::due::Due;
use crate::engine::Handler;
use crate::message::AttemptResult;
use crate::payload::Payload;
use crate::retry::Retry;
use crate::transaction::Attempt;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use timer_executor::panics;

/// A function that runs a future to its end on a runtime of the user.
pub(crate) type Spawn = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Returns the handler that calls a function.
pub(crate) fn blocking<P: Payload, D: Into<Done>>(
    function: impl Fn(&Due<P>) -> Result<D, Retry> + Send + Sync + 'static,
) -> Handler {
    Arc::new(move |mut started, report| {
        let Some(report) = report.start() else { return };
        started.record_start();
        let span = started.span();
        let result = span.during(|| {
            read(&mut started.attempt).and_then(|payload| {
                let mark = started.handler_mark();
                call(|| mark.during(|| function(&Due { payload, started }))).and_then(|result| result)
            })
        });
        let result = AttemptResult::of(result);
        span.end(result.failure());
        report.end(result);
    })
}

/// Returns the handler that spawns a future.
pub(crate) fn spawning<P, D, F>(spawn: Spawn, function: impl Fn(Due<P>) -> F + Send + Sync + 'static) -> Handler
where
    P: Payload,
    D: Into<Done>,
    F: Future<Output = Result<D, Retry>> + Send + 'static,
{
    Arc::new(move |mut started, report| {
        let Some(report) = report.start() else { return };
        started.record_start();
        let span = started.span();
        let mark = started.handler_mark();
        let progress = started.progress().clone();
        let future = span.during(|| {
            read(&mut started.attempt).and_then(|payload| call(|| mark.during(|| function(Due { payload, started }))))
        });
        match future {
            // If the future panics, the runtime drops the report, which counts as a failed attempt.
            Ok(future) => spawn(Box::pin(async move {
                let Some(report) = report.start() else { return };
                // The future is dropped before the report.
                let result = {
                    let mut future = pin!(future);
                    let poll = |context: &mut Context<'_>| {
                        if progress.poll_cut_off(context.waker()) {
                            return Poll::Ready(None);
                        }
                        span.during(|| mark.during(|| future.as_mut().poll(context))).map(Some)
                    };
                    poll_fn(poll).await
                };
                // The keeper ignores the report of an attempt that it has cut off.
                let result = result.map_or_else(|| AttemptResult::NotStarted, AttemptResult::of);
                span.end(result.failure());
                report.end(result);
            })),
            Err(failure) => {
                let result = AttemptResult::Failed(failure);
                span.end(result.failure());
                report.end(result);
            }
        }
    })
}

/// Takes the payload of an attempt.
fn read<P: Payload>(attempt: &mut Attempt) -> Result<P, Retry> {
    let bytes = std::mem::take(&mut attempt.payload);
    let unread = |why: &dyn Display| Retry::new(format!("the payload cannot be read: {why}"));
    // The text of the error is code of the user, too.
    panics::catch(|| P::decode(bytes, attempt.format).map_err(|error| unread(&error)))
        .unwrap_or_else(|message| Err(unread(&format_args!("decoding it panicked: {message}"))))
}

/// Calls a handler. A panic becomes a failure of the attempt.
fn call<R>(handler: impl FnOnce() -> R) -> Result<R, Retry> {
    panics::catch(handler).map_err(|message| Retry::new(format!("the handler panicked: {message}")))
}
