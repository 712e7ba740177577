//! Deadlines for the body of a response, for each frame or for the whole.

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
/// `tower_http::timeout::ResponseBodyTimeoutLayer` but on a timer of this workspace. It can also
/// limit the time of the whole body.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_adapters::tower::ResponseBodyTimeoutLayer;
/// use timer_core::Timer;
///
/// let frame = ResponseBodyTimeoutLayer::new(Timer::current(), Duration::from_secs(10));
/// let whole = ResponseBodyTimeoutLayer::for_whole_body(Timer::current(), Duration::from_secs(300));
/// ```
#[derive(Debug, Clone)]
pub struct ResponseBodyTimeoutLayer {
    timer: Timer,
    timeout: Duration,
    is_whole: bool,
}

impl ResponseBodyTimeoutLayer {
    /// Creates a layer that limits the wait for each frame to `timeout`, counted from the poll that
    /// asks for it.
    pub fn new(timer: Timer, timeout: Duration) -> Self {
        Self { timer, timeout, is_whole: false }
    }

    /// Creates a layer that limits the time of a whole body to `timeout`, counted from the head of
    /// its response.
    ///
    /// Only this limit ends a body whose frames come slowly, but each in time. A service can have a
    /// layer of each kind.
    pub fn for_whole_body(timer: Timer, timeout: Duration) -> Self {
        Self { timer, timeout, is_whole: true }
    }
}

impl<S> Layer<S> for ResponseBodyTimeoutLayer {
    type Service = ResponseBodyTimeout<S>;

    fn layer(&self, inner: S) -> ResponseBodyTimeout<S> {
        ResponseBodyTimeout { inner, layer: self.clone() }
    }
}

/// A service whose response bodies are [`TimeoutBody`]s. [`ResponseBodyTimeoutLayer`] makes it.
#[derive(Debug, Clone)]
pub struct ResponseBodyTimeout<S> {
    inner: S,
    layer: ResponseBodyTimeoutLayer,
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
        ResponseBodyFuture { response, layer: self.layer.clone() }
    }
}

pin_project! {
    /// The future of [`ResponseBodyTimeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseBodyFuture<F> {
        #[pin]
        response: F,
        layer: ResponseBodyTimeoutLayer,
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
        let ResponseBodyTimeoutLayer { timer, timeout, is_whole } = this.layer;
        Poll::Ready(Ok(
            response.map(|body| TimeoutBody { is_whole: *is_whole, ..TimeoutBody::new(body, timer, *timeout) })
        ))
    }
}

pin_project! {
    /// A body that fails with [`Elapsed`] if a frame or the whole body takes too long.
    ///
    /// The time of a frame counts from the poll that asks for it, so a pause in which nothing reads
    /// the body does not count. All waits for frames share one entry of the timer, and a frame that
    /// is ready at once does not move it.
    ///
    /// After an error of its own or of the inner body, the body has ended and yields no further
    /// frame.
    #[derive(Debug)]
    pub struct TimeoutBody<B> {
        #[pin]
        body: B,
        sleep: Sleep,
        timeout: Duration,
        is_whole: bool,
        is_waiting: bool,
        has_ended: bool,
    }
}

impl<B> TimeoutBody<B> {
    /// Creates a body that waits at most `timeout` for each frame of `body`.
    pub fn new(body: B, timer: &Timer, timeout: Duration) -> Self {
        Self { body, sleep: timer.sleep(timeout), timeout, is_whole: false, is_waiting: false, has_ended: false }
    }

    /// Creates a body that fails if `body` has not ended within `timeout` from now. A pause in
    /// which nothing reads the body counts.
    pub fn for_whole_body(body: B, timer: &Timer, timeout: Duration) -> Self {
        Self { is_whole: true, ..Self::new(body, timer, timeout) }
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
        if *this.has_ended {
            return Poll::Ready(None);
        }
        // The limit also ends a body whose frames are always ready.
        let is_over = *this.is_whole && Pin::new(&mut *this.sleep).poll(cx).is_ready();
        if !is_over {
            if let Poll::Ready(frame) = this.body.poll_frame(cx) {
                *this.is_waiting = false;
                *this.has_ended = !matches!(frame, Some(Ok(_)));
                return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
            }
            if *this.is_whole {
                return Poll::Pending;
            }
            if !*this.is_waiting {
                this.sleep.reset_after(*this.timeout);
                *this.is_waiting = true;
            }
            ready!(Pin::new(this.sleep).poll(cx));
        }
        *this.has_ended = true;
        Poll::Ready(Some(Err(Box::new(Elapsed::new()))))
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.has_ended { SizeHint::with_exact(0) } else { self.body.size_hint() }
    }
}
