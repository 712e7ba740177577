//! The future that limits another future to a deadline.

use super::Sleep;
use crate::error::RejectReason;
use core::error::Error;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use pin_project_lite::pin_project;
use std::io;

pin_project! {
    /// A future with a deadline, made by [`Timer::timeout`](crate::Timer::timeout) and
    /// [`Timer::timeout_at`](crate::Timer::timeout_at).
    ///
    /// Each poll polls the inner future first. The output is an error only if the inner future is
    /// not ready. The deadline is registered only if the inner future has to wait. `TimeoutFuture`
    /// is `Unpin`, `Send` and `Sync` if the inner future is.
    ///
    /// `S` is the sleep that ends at the deadline. The [`Timeout`](crate::infallible::Timeout) of an
    /// infallible timer is this type with the sleep of that timer, and has another error.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timer_core::{TimeoutError, Timer};
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let reply = timer.timeout(Duration::from_millis(2), pending::<String>()).await;
    /// assert_eq!(reply, Err(TimeoutError::Elapsed));
    /// # });
    /// ```
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<F, S = Sleep> {
        #[pin]
        pub(crate) future: F,
        pub(crate) sleep: S,
    }
}

impl<F, S> TimeoutFuture<F, S> {
    #[inline]
    pub(crate) fn new(future: F, sleep: S) -> Self {
        Self { future, sleep }
    }

    /// Returns a reference to the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::future::ready;
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timeout = Timer::new().timeout(Duration::from_secs(1), ready(7));
    /// assert_eq!(timeout.get_ref().clone().into_inner(), 7);
    /// ```
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns a mutable reference to the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::future::ready;
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let mut timeout = Timer::new().timeout(Duration::from_secs(1), ready(7));
    /// *timeout.get_mut() = ready(8);
    /// ```
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Removes the deadline and returns the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::future::ready;
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timeout = Timer::new().timeout(Duration::from_secs(1), ready(7));
    /// assert_eq!(timeout.into_inner().into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for TimeoutFuture<F> {
    type Output = Result<F::Output, TimeoutError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.sleep.prefetch();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Poll::Ready(Err(match ready!(Pin::new(this.sleep).poll(cx)) {
            Ok(()) => TimeoutError::Elapsed,
            Err(reason) => TimeoutError::Rejected(reason),
        }))
    }
}

impl<F, S: fmt::Debug> fmt::Debug for TimeoutFuture<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutFuture").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}

/// The reason why a [`TimeoutFuture`] does not yield the output of its inner future.
///
/// # Examples
///
/// ```
/// use std::io;
/// use timer_core::TimeoutError;
///
/// assert!(TimeoutError::Elapsed.is_elapsed());
/// assert_eq!(io::Error::from(TimeoutError::Elapsed).kind(), io::ErrorKind::TimedOut);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The deadline has come before the inner future was ready.
    Elapsed,
    /// The timer has refused the deadline or was stopped. The inner future is intact and can still
    /// be polled.
    Rejected(RejectReason),
}

impl TimeoutError {
    /// Returns `true` if the deadline has come.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{RejectReason, TimeoutError};
    /// assert!(!TimeoutError::Rejected(RejectReason::Stopped).is_elapsed());
    /// ```
    pub fn is_elapsed(self) -> bool {
        self == Self::Elapsed
    }
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("the deadline has elapsed"),
            Self::Rejected(reason) => write!(f, "no deadline could be set: {reason}"),
        }
    }
}

impl Error for TimeoutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Elapsed => None,
            Self::Rejected(reason) => Some(reason),
        }
    }
}

impl From<RejectReason> for TimeoutError {
    fn from(reason: RejectReason) -> Self {
        Self::Rejected(reason)
    }
}

/// Converts an elapsed deadline to [`TimedOut`](io::ErrorKind::TimedOut), and a refusal to
/// [`Other`](io::ErrorKind::Other).
impl From<TimeoutError> for io::Error {
    fn from(error: TimeoutError) -> io::Error {
        let kind = if error.is_elapsed() { io::ErrorKind::TimedOut } else { io::ErrorKind::Other };
        io::Error::new(kind, error)
    }
}
