//! The timers that this program can take its deadlines from, behind one function.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use timer_core::{RejectReason, Timeout, Timer};
use tokio::sync::oneshot;

/// Whose deadlines.
#[derive(Clone)]
pub(crate) enum Clock {
    /// This library's.
    Ours(Timer),
    /// The runtime's.
    Tokio,
}

/// Why a future has no output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Missed {
    /// Its deadline came first.
    Elapsed,
    /// The timer takes no deadline.
    Rejected(RejectReason),
}

impl Clock {
    /// The output of `future`, if it comes within `delay`. What does not come is dropped.
    pub(crate) async fn with_deadline<F: Future>(&self, delay: Duration, future: F) -> Result<F::Output, Missed> {
        match self {
            Self::Ours(timer) => ours(timer, delay, future).await,
            Self::Tokio => tokio::time::timeout(delay, future).await.map_err(|_| Missed::Elapsed),
        }
    }

    /// Waits.
    pub(crate) async fn sleep(&self, delay: Duration) {
        _ = self.with_deadline(delay, pending::<()>()).await;
    }

    /// How many deadlines are pending, if the timer tells.
    pub(crate) fn pending(&self) -> Option<usize> {
        match self {
            Self::Ours(timer) => Some(timer.pending_timeouts()),
            Self::Tokio => None,
        }
    }
}

async fn ours<F: Future>(timer: &Timer, delay: Duration, future: F) -> Result<F::Output, Missed> {
    let (elapse, mut elapsed) = oneshot::channel();
    // The receiver is gone when the output came first.
    let deadline = timer.new_timeout(delay, move |_| _ = elapse.send(()));
    let _deadline = CancelOnDrop(deadline.map_err(|rejected| Missed::Rejected(rejected.reason))?);
    let mut future = pin!(future);
    poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut elapsed).poll(context).map(|told| match told {
            Ok(()) => Err(Missed::Elapsed),
            // The task was dropped before it ran: the timer was stopped.
            Err(_) => Err(Missed::Rejected(RejectReason::Stopped)),
        })
    })
    .await
}

/// Whatever ends the wait, also a caller that goes away, ends the deadline.
struct CancelOnDrop(Timeout);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
