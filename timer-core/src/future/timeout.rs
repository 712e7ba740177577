//! The future that limits another future to a deadline.

use super::Sleep;
use core::error::Error;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;
use std::io;

pin_project! {
    /// A future with a deadline, made by [`Timer::timeout`](crate::Timer::timeout) and
    /// [`Timer::timeout_at`](crate::Timer::timeout_at).
    ///
    /// Each poll polls the inner future first. The output is an error only if the inner future is
    /// not ready. The deadline is registered only if the inner future has to wait. `TimeoutFuture`
    /// is `Unpin`, `Send` and `Sync` if the inner future is. In [`time`](crate::time) its name is
    /// `Timeout`, as in tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timer_core::{Elapsed, Timer};
    ///
    /// # futures::executor::block_on(async {
    /// let timer = Timer::new();
    /// let reply = timer.timeout(Duration::from_millis(2), pending::<String>()).await;
    /// assert_eq!(reply, Err(Elapsed::new()));
    /// # });
    /// ```
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<F> {
        #[pin]
        future: F,
        sleep: Sleep,
    }
}

impl<F> TimeoutFuture<F> {
    #[inline]
    pub(crate) fn new(future: F, sleep: Sleep) -> Self {
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
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.sleep.prefetch();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.sleep).poll(cx).map(|()| Err(Elapsed::new()))
    }
}

impl<F> fmt::Debug for TimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutFuture").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}

/// The error of a [`TimeoutFuture`] whose deadline has passed.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, timeout};
/// # futures::executor::block_on(async {
/// let late = timeout(Duration::ZERO, std::future::pending::<()>()).await.unwrap_err();
/// assert_eq!(late.to_string(), "deadline has elapsed");
/// assert_eq!(std::io::Error::from(late).kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[doc(alias = "TimeoutError")]
pub struct Elapsed(());

impl Elapsed {
    /// Creates the error, for code that enforces deadlines itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::time::error::Elapsed;
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
