//! A deadline for the response of a service.

use super::BoxError;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use pin_project_lite::pin_project;
use std::time::Duration;
use timer_core::{TimeoutFuture, Timer};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that gives each request a deadline, like `tower::timeout::TimeoutLayer` but on a timer
/// of this workspace.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_adapters::tower::TimeoutLayer;
/// use timer_core::Timer;
///
/// let layer = TimeoutLayer::new(Timer::current(), Duration::from_secs(10));
/// ```
#[derive(Debug, Clone)]
pub struct TimeoutLayer {
    timer: Timer,
    timeout: Duration,
}

impl TimeoutLayer {
    /// Creates a layer that limits each request to `timeout`, counted from its call.
    pub fn new(timer: Timer, timeout: Duration) -> Self {
        Self { timer, timeout }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout::new(inner, self.timer.clone(), self.timeout)
    }
}

/// A service that gives each request a deadline. [`TimeoutLayer`] makes it.
///
/// A request whose deadline passes fails with [`Elapsed`](timer_core::time::error::Elapsed). The
/// future of the inner service lives until the caller drops the one that has failed.
#[derive(Debug, Clone)]
pub struct Timeout<S> {
    inner: S,
    timer: Timer,
    timeout: Duration,
}

impl<S> Timeout<S> {
    /// Creates a service that limits each request to `inner` to `timeout`, counted from its call.
    pub fn new(inner: S, timer: Timer, timeout: Duration) -> Self {
        Self { inner, timer, timeout }
    }

    /// Returns the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service by mutable reference.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service and drops this one.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Request> Service<Request> for Timeout<S>
where
    S: Service<Request>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ResponseFuture { response: self.timer.timeout(self.timeout, self.inner.call(request)) }
    }
}

pin_project! {
    /// The future of [`Timeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        response: TimeoutFuture<F>,
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().response.poll(cx)) {
            Ok(response) => response.map_err(Into::into),
            Err(elapsed) => Err(elapsed.into()),
        })
    }
}
