//! A deadline for each frame of a response's body.

use super::BoxError;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::time::Duration;
use timer_core::{Elapsed, Sleep, Timer};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that limits the wait for each frame of a response's body, like
/// `tower_http::timeout::ResponseBodyTimeoutLayer` but on a timer of this workspace.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_adapters::tower::ResponseBodyTimeoutLayer;
/// use timer_core::Timer;
///
/// let layer = ResponseBodyTimeoutLayer::new(Timer::current(), Duration::from_secs(10));
/// ```
#[derive(Debug, Clone)]
pub struct ResponseBodyTimeoutLayer {
    timer: Timer,
    timeout: Duration,
}

impl ResponseBodyTimeoutLayer {
    /// Creates a layer that limits the wait for each frame to `timeout`, counted from the poll that
    /// asks for it.
    pub fn new(timer: Timer, timeout: Duration) -> Self {
        Self { timer, timeout }
    }
}

impl<S> Layer<S> for ResponseBodyTimeoutLayer {
    type Service = ResponseBodyTimeout<S>;

    fn layer(&self, inner: S) -> ResponseBodyTimeout<S> {
        ResponseBodyTimeout { inner, timer: self.timer.clone(), timeout: self.timeout }
    }
}

/// A service whose response bodies are [`TimeoutBody`]s. [`ResponseBodyTimeoutLayer`] makes it.
#[derive(Debug, Clone)]
pub struct ResponseBodyTimeout<S> {
    inner: S,
    timer: Timer,
    timeout: Duration,
}

impl<S, Request, B> Service<Request> for ResponseBodyTimeout<S>
where
    S: Service<Request, Response = Response<B>>,
{
    type Response = Response<TimeoutBody<B>>;
    type Error = S::Error;
    type Future = ResponseBodyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let response = self.inner.call(request);
        ResponseBodyFuture { response, timer: self.timer.clone(), timeout: self.timeout }
    }
}

pin_project! {
    /// The future of [`ResponseBodyTimeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseBodyFuture<F> {
        #[pin]
        response: F,
        timer: Timer,
        timeout: Duration,
    }
}

impl<F, B, E> Future for ResponseBodyFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<TimeoutBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.response.poll(cx))?;
        Poll::Ready(Ok(response.map(|body| TimeoutBody::new(body, this.timer, *this.timeout))))
    }
}

pin_project! {
    /// A body that fails with [`Elapsed`] if a frame takes too long.
    ///
    /// The time counts from the poll that asks for a frame, so a pause in which nothing reads the
    /// body does not count. All waits for frames share one entry of the timer, and a frame that is
    /// ready at once does not move it.
    #[derive(Debug)]
    pub struct TimeoutBody<B> {
        #[pin]
        body: B,
        sleep: Sleep,
        timeout: Duration,
        is_waiting: bool,
    }
}

impl<B> TimeoutBody<B> {
    /// Creates a body that waits at most `timeout` for each frame of `body`.
    pub fn new(body: B, timer: &Timer, timeout: Duration) -> Self {
        Self { body, sleep: timer.sleep(timeout), timeout, is_waiting: false }
    }
}

impl<B: Body> Body for TimeoutBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.is_waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if !*this.is_waiting {
            this.sleep.reset_after(*this.timeout);
            *this.is_waiting = true;
        }
        ready!(Pin::new(this.sleep).poll(cx));
        Poll::Ready(Some(Err(Box::new(Elapsed::new()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
