//! The parts of a connection that tell its stage: its I/O, its service, and the bodies of its
//! responses.

use core::fmt;
use core::future::Future;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, ready};
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper::service::Service;
use hyper::{Request, Response};
use pin_project_lite::pin_project;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// A limit of [`ConnectionLimits`](super::ConnectionLimits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The header of a request was not complete in time.
    Header,
    /// The service did not respond in time.
    Request,
    /// Nothing of the response's body was written for too long.
    Response,
    /// The next request did not begin in time.
    KeepAlive,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "the header of a request took too long",
            Self::Request => "the response to a request took too long",
            Self::Response => "the body of a response made no progress for too long",
            Self::KeepAlive => "the connection was idle for too long",
        })
    }
}

/// Makes the response to a late request.
pub(super) type Respond<B> = Arc<dyn Fn() -> Response<B> + Send + Sync>;

/// The stage of a connection. Each stage can have a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A header is not complete, or the connection is new.
    Header,
    /// The service works on the request.
    Request,
    /// hyper takes the body of a response.
    Response,
    /// The connection waits for a request.
    KeepAlive,
}

impl Stage {
    /// Returns the stage in a word of [`Stages`].
    #[inline]
    pub(super) fn of(word: usize) -> Self {
        match word % GIVEN_UP {
            0 => Self::Header,
            1 => Self::Request,
            2 => Self::Response,
            _ => Self::KeepAlive,
        }
    }

    pub(super) fn limit(self) -> Limit {
        match self {
            Self::Header => Limit::Header,
            Self::Request => Limit::Request,
            Self::Response => Limit::Response,
            Self::KeepAlive => Limit::KeepAlive,
        }
    }
}

/// One change in the word of [`Stages`]. The bits below it are the stage and the mark of a late
/// request.
const CHANGE: usize = 8;

/// The bit of a request whose limit has passed.
pub(super) const GIVEN_UP: usize = 4;

/// The stage of a connection and the number of its changes, in one word.
///
/// Several requests may be served in one poll of the connection. The count tells the stages of one
/// request from those of the next.
///
/// ORDERING: Relaxed, because the task of the connection makes all accesses, and the word guards no
/// other memory.
#[derive(Debug, Default)]
pub(super) struct Stages(AtomicUsize);

impl Stages {
    #[inline]
    pub(super) fn word(&self) -> usize {
        // ORDERING: Relaxed, see the type.
        self.0.load(Ordering::Relaxed)
    }

    /// Begins a stage, even if it is the current one, and returns the word.
    #[inline]
    fn begin(&self, stage: Stage) -> usize {
        let word = (self.word() / CHANGE).wrapping_add(1).wrapping_mul(CHANGE) + stage as usize;
        // ORDERING: Relaxed, see the type.
        self.0.store(word, Ordering::Relaxed);
        word
    }

    /// Asks for the response to a late request. Returns `false` if it was asked for before.
    pub(super) fn give_up_request(&self) -> bool {
        let word = self.word();
        // ORDERING: Relaxed, see the type.
        self.0.store(word | GIVEN_UP, Ordering::Relaxed);
        word & GIVEN_UP == 0
    }

    /// Returns `true` if the next bytes begin a header.
    #[inline]
    fn waits_for_header(&self) -> bool {
        Stage::of(self.word()) == Stage::KeepAlive
    }

    /// Notes that bytes were written. Starts the time of the current stage again, unless the
    /// service is working.
    #[inline]
    fn note_written(&self) {
        let stage = Stage::of(self.word());
        if stage != Stage::Request {
            self.begin(stage);
        }
    }
}

pin_project! {
    /// The I/O of a connection with limits, as [`ConnectionLimits::serve`] passes it to `connect`.
    ///
    /// [`ConnectionLimits::serve`]: super::ConnectionLimits::serve
    #[derive(Debug)]
    pub struct LimitedIo<I> {
        #[pin]
        io: I,
        stages: Arc<Stages>,
        // Whether bytes wait for a client that does not read.
        is_blocked: bool,
    }
}

impl<I> LimitedIo<I> {
    pub(super) fn new(io: I, stages: Arc<Stages>) -> Self {
        Self { io, stages, is_blocked: false }
    }

    /// Returns the inner I/O, for example after an upgrade.
    pub fn into_inner(self) -> I {
        self.io
    }
}

/// The largest first read of a request, in bytes. Such a read looks at its bytes.
const MAX_FIRST_READ: usize = 4096;

impl<I: Read> Read for LimitedIo<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        // hyper parses no header before the previous response is written, so even a complete one
        // would have to wait for a slow client.
        if *this.is_blocked || !this.stages.waits_for_header() {
            return this.io.poll_read(cx, buf);
        }
        let mut bytes = [MaybeUninit::uninit(); MAX_FIRST_READ];
        let room = buf.remaining().min(MAX_FIRST_READ);
        let mut read = ReadBuf::uninit(&mut bytes[..room]);
        ready!(this.io.poll_read(cx, read.unfilled()))?;
        // A client may send empty lines before a request (RFC 9112, 2.2).
        if !read.filled().iter().all(|byte| b"\r\n".contains(byte)) {
            this.stages.begin(Stage::Header);
        }
        buf.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl<I: Write> Write for LimitedIo<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.io.poll_write(cx, buf);
        *this.is_blocked = written.is_pending();
        let written = ready!(written)?;
        this.stages.note_written();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let flushed = this.io.poll_flush(cx);
        *this.is_blocked = flushed.is_pending();
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.io.poll_write_vectored(cx, bufs);
        *this.is_blocked = written.is_pending();
        let written = ready!(written)?;
        this.stages.note_written();
        Poll::Ready(Ok(written))
    }
}

/// The parts of a service that its requests share.
struct Shared<B> {
    stages: Arc<Stages>,
    respond: Option<Respond<B>>,
}

/// The service of a connection with limits, as [`ConnectionLimits::serve`] passes it to `connect`.
///
/// [`ConnectionLimits::serve`]: super::ConnectionLimits::serve
pub struct LimitedService<S, B> {
    service: S,
    shared: Arc<Shared<B>>,
}

impl<S, B> LimitedService<S, B> {
    pub(super) fn new(service: S, stages: Arc<Stages>, respond: Option<Respond<B>>) -> Self {
        Self { service, shared: Arc::new(Shared { stages, respond }) }
    }
}

impl<S, B, R> Service<Request<R>> for LimitedService<S, B>
where
    S: Service<Request<R>, Response = Response<B>>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = S::Error;
    type Future = LimitedFuture<S::Future, B>;

    fn call(&self, request: Request<R>) -> Self::Future {
        let word = self.shared.stages.begin(Stage::Request);
        let guard = ExchangeGuard { shared: self.shared.clone() };
        LimitedFuture { future: self.service.call(request), word, guard: Some(guard) }
    }
}

impl<S: fmt::Debug, B> fmt::Debug for LimitedService<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedService").field("service", &self.service).finish_non_exhaustive()
    }
}

/// A guard that lives as long as a request and its response. Dropping it begins the wait for the
/// next request.
struct ExchangeGuard<B> {
    shared: Arc<Shared<B>>,
}

impl<B> Drop for ExchangeGuard<B> {
    fn drop(&mut self) {
        self.shared.stages.begin(Stage::KeepAlive);
    }
}

pin_project! {
    /// The future of [`LimitedService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct LimitedFuture<F, B> {
        #[pin]
        future: F,
        // The word at the beginning of the stage.
        word: usize,
        // It moves into the response's body.
        guard: Option<ExchangeGuard<B>>,
    }
}

impl<F, B, E> Future for LimitedFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<LimitedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let shared = this.guard.as_ref().map(|guard| &guard.shared);
        let given_up = shared.filter(|shared| shared.stages.word() == *this.word | GIVEN_UP);
        let response = match given_up.and_then(|shared| shared.respond.as_ref()) {
            Some(respond) => respond(),
            None => ready!(this.future.poll(cx))?,
        };
        if let Some(shared) = shared {
            shared.stages.begin(Stage::Response);
        }
        Poll::Ready(Ok(response.map(|body| LimitedBody { body, guard: this.guard.take() })))
    }
}

impl<F: fmt::Debug, B> fmt::Debug for LimitedFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedFuture").field("future", &self.future).finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a response of [`LimitedService`].
    pub struct LimitedBody<B> {
        #[pin]
        body: B,
        guard: Option<ExchangeGuard<B>>,
    }
}

impl<B: Body> Body for LimitedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: fmt::Debug> fmt::Debug for LimitedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedBody").field("body", &self.body).finish_non_exhaustive()
    }
}
