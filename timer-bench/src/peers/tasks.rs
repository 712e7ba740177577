//! The trait of timers for tasks, with futures that sleep and futures that have a limit.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// A timer whose sleeps are futures.
pub(crate) trait Tasks: Clone + Send + Sync + 'static {
    /// The name on the command line and in the tables.
    const NAME: &'static str;

    /// A future that is ready when its time is over. Dropping it cancels.
    type Sleep: Future<Output = ()> + Send + 'static;

    /// Builds a timer, or returns the one of the process.
    fn build() -> Self;

    /// Returns a sleep of `delay`. Called and polled on the runtime.
    fn sleep(&self, delay: Duration) -> Self::Sleep;

    /// Moves the end of the sleep to `delay` from now.
    fn reset(sleep: Pin<&mut Self::Sleep>, delay: Duration);

    /// Runs `future` for at most `limit` and returns `true` if it was ready. Uses the timer's own
    /// call, or else a sleep beside the future.
    fn is_in_time<F: Future + Send>(&self, limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        let sleep = self.sleep(limit);
        async move { is_first(pin!(future), pin!(sleep)).await }
    }
}

/// Returns `true` if `future` is ready before `sleep`. It is polled first, so it wins if both are
/// ready.
pub(crate) async fn is_first<F: Future, S: Future>(mut future: Pin<&mut F>, mut sleep: Pin<&mut S>) -> bool {
    poll_fn(|context| {
        if future.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        sleep.as_mut().poll(context).map(|_| false)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::is_first;
    use std::future::{pending, poll_fn, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn now(future: impl Future<Output = bool>) -> Poll<bool> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_future_wins_when_both_are_ready() {
        assert_eq!(now(is_first(pin!(ready(())), pin!(ready(())))), Poll::Ready(true));
        assert_eq!(now(is_first(pin!(pending::<()>()), pin!(ready(())))), Poll::Ready(false));
        assert_eq!(now(is_first(pin!(pending::<()>()), pin!(pending::<()>()))), Poll::Pending);
    }

    #[test]
    fn a_ready_future_leaves_the_sleep_unpolled() {
        let never = poll_fn(|_| -> Poll<()> { panic!("polled") });
        assert_eq!(now(is_first(pin!(ready(())), pin!(never))), Poll::Ready(true));
    }
}
