//! A future with a deadline whose only error is that the deadline has passed.

use super::Sleep;
use crate::future::TimeoutFuture;
use core::error::Error;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

/// A future with a deadline, made by [`global::timeout`](crate::global::timeout) and
/// [`InfallibleTimer::timeout`](crate::InfallibleTimer::timeout).
///
/// Each poll polls the inner future first, also when the deadline has passed. The deadline is
/// registered only if the inner future waits. The only error is [`Elapsed`]. The methods are those
/// of [`TimeoutFuture`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, timeout};
/// # futures::executor::block_on(async {
/// assert_eq!(timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
pub type Timeout<F> = TimeoutFuture<F, Sleep>;

impl<F: Future> Future for TimeoutFuture<F, Sleep> {
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.sleep.inner.prefetch();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.sleep).poll(cx).map(|()| Err(Elapsed::new()))
    }
}

/// The error of a [`Timeout`] whose deadline has passed.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, timeout};
/// # futures::executor::block_on(async {
/// let late = timeout(Duration::ZERO, std::future::pending::<()>()).await.unwrap_err();
/// assert_eq!(late.to_string(), "deadline has elapsed");
/// assert_eq!(std::io::Error::from(late).kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Elapsed(());

impl Elapsed {
    /// Creates the error, for code that enforces deadlines itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::global::error::Elapsed;
    /// assert_eq!(Elapsed::new().to_string(), "deadline has elapsed");
    /// ```
    #[inline]
    pub fn new() -> Self {
        Elapsed(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
