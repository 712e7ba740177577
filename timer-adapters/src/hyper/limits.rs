//! The limits of an HTTP/1 connection, and the future that enforces them.

use super::parts::{GIVEN_UP, Limit, LimitedIo, LimitedService, Respond, Stage, Stages};
use super::{Sleep, Timer};
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hyper::Response;
use pin_project_lite::pin_project;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Limits for the connections of an HTTP/1 server, with one sleep per connection.
///
/// hyper's own header timeout makes a sleep for each request and drops it. A timeout around the
/// handler makes another one. With these limits a connection makes one sleep. A request moves it
/// once per poll in which its stage changes, so twice if the service waits once. A move to a later
/// deadline costs a reading of the clock and an atomic operation. The first request after a pause
/// that was longer than the shortest limit moves it to an earlier one, which also takes a lock and
/// may wake the timer's worker.
///
/// A connection is in one of these stages, each of which may have a limit. None has one by default.
///
/// | stage | begins | limit |
/// |---|---|---|
/// | header | with the connection, and with the first byte of each further request | [`header`](Self::header) |
/// | request | when the header is complete | [`request`](Self::request) |
/// | response | when the service has returned the response | [`response`](Self::response) |
/// | keep-alive | when hyper has taken all of the response's body | [`keep_alive`](Self::keep_alive) |
///
/// If a limit passes, the connection is dropped, and its future ends with
/// [`ConnectionError::TimedOut`]. The client sees the end of the connection without a response, or
/// a reset if it is still sending. With [`late_response`](Self::late_response), a request whose
/// limit passes gets a response instead.
///
/// Leave hyper's own limit, `header_read_timeout`, unset. Then hyper needs no timer. HTTP/2 is not
/// supported, because its connections serve several requests at a time.
///
/// # Examples
///
/// ```no_run
/// use hyper::server::conn::http1;
/// use hyper_util::rt::TokioIo;
/// use std::time::Duration;
/// use timer_adapters::hyper::ConnectionLimits;
/// use timer_core::Timer;
///
/// # type Body = http_body_util::Full<&'static [u8]>;
/// # async fn hello(_: hyper::Request<hyper::body::Incoming>) -> hyper::Result<hyper::Response<Body>> {
/// #     Ok(hyper::Response::default())
/// # }
/// # async fn serve(socket: tokio::net::TcpStream) {
/// let limits = ConnectionLimits::new(Timer::current())
///     .header(Duration::from_secs(10))
///     .request(Duration::from_secs(30))
///     .keep_alive(Duration::from_secs(60));
/// let service = hyper::service::service_fn(hello);
/// let connection = limits.serve(TokioIo::new(socket), service, |io, service| {
///     http1::Builder::new().serve_connection(io, service)
/// });
/// if let Err(error) = connection.await {
///     eprintln!("{error}");
/// }
/// # }
/// ```
pub struct ConnectionLimits<B> {
    timer: Timer,
    header: Option<Duration>,
    request: Option<Duration>,
    response: Option<Duration>,
    keep_alive: Option<Duration>,
    respond: Option<Respond<B>>,
}

impl<B> ConnectionLimits<B> {
    /// Creates limits for connections, none of which is set yet.
    pub fn new(timer: Timer) -> Self {
        Self { timer, header: None, request: None, response: None, keep_alive: None, respond: None }
    }

    /// Limits the time from the first byte of a request to the end of its header. Empty lines
    /// before a request do not count as its bytes. On a new connection, the time counts from the
    /// first poll.
    ///
    /// Bytes of a request that arrive before the previous response is written do not start the
    /// time. The first bytes after that do, even if they belong to the body of the previous
    /// request, which a service may still read after its response.
    #[must_use]
    pub fn header(mut self, limit: Duration) -> Self {
        self.header = Some(limit);
        self
    }

    /// Limits the time from the end of a header to the response. The time in which the service
    /// reads the request's body is part of it.
    #[must_use]
    pub fn request(mut self, limit: Duration) -> Self {
        self.request = Some(limit);
        self
    }

    /// Limits the time for which a response makes no progress, because the service produces no body
    /// or the client does not read. Each write starts the time anew.
    ///
    /// A client that reads slowly shows as progress only when the socket takes more bytes, and the
    /// buffers of both sockets may hold megabytes. Such a client may read a few hundred kilobytes
    /// between two writes. So choose a limit in which the slowest client reads that much, or set a
    /// small send buffer on the socket.
    ///
    /// The limit ends when hyper has taken the last frame of the body into its buffer. A body of
    /// one frame, such as `Full`, is taken at once. If the client does not read it, only the limit
    /// set by [`keep_alive`](Self::keep_alive) ends the connection, so set that limit too.
    ///
    /// hyper's option `pipeline_flush` delays writes while a further request is buffered. A
    /// response then makes no progress although the service does, so do not combine them.
    #[must_use]
    pub fn response(mut self, limit: Duration) -> Self {
        self.response = Some(limit);
        self
    }

    /// Limits the time between a response and the next request. The time counts from the last
    /// write, so it does not end a long response whose client reads slowly.
    #[must_use]
    pub fn keep_alive(mut self, limit: Duration) -> Self {
        self.keep_alive = Some(limit);
        self
    }

    /// Sets the response to a request whose limit passes. The future of the service is dropped. The
    /// connection stays open if the body of the request has been read; otherwise hyper closes it
    /// after the response. If hyper takes no response because the client has not read the previous
    /// one, the connection is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use hyper::{Response, StatusCode};
    /// use std::time::Duration;
    /// use timer_adapters::hyper::ConnectionLimits;
    /// use timer_core::Timer;
    ///
    /// let limits = ConnectionLimits::new(Timer::current())
    ///     .request(Duration::from_secs(30))
    ///     .late_response(|| {
    ///         let mut response = Response::new("too late".to_owned());
    ///         *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    ///         response
    ///     });
    /// ```
    #[must_use]
    pub fn late_response(mut self, respond: impl Fn() -> Response<B> + Send + Sync + 'static) -> Self {
        self.respond = Some(Arc::new(respond));
        self
    }

    /// Returns a future that serves a connection with these limits.
    ///
    /// `connect` makes the connection from the wrapped I/O and service. It can also extend the
    /// connection, for example by `with_upgrades()` or `GracefulShutdown::watch`. After an upgrade
    /// no limit applies.
    pub fn serve<I, S, C, T, E>(
        &self,
        io: I,
        service: S,
        connect: impl FnOnce(LimitedIo<I>, LimitedService<S, B>) -> C,
    ) -> LimitedConnection<C>
    where
        C: Future<Output = Result<T, E>>,
    {
        let stages = Arc::new(Stages::default());
        let connection = connect(
            LimitedIo::new(io, stages.clone()),
            LimitedService::new(service, stages.clone(), self.respond.clone()),
        );
        let limits = [self.header, self.request, self.response, self.keep_alive];
        let shortest = limits.into_iter().flatten().min().unwrap_or_default();
        let rests = limits.map(|limit| limit.map(|limit| limit - shortest));
        let watch = Watch { sleep: self.timer.sleep(shortest), shortest, rests, rest: None, seen: usize::MAX };
        LimitedConnection { connection: Some(connection), stages, has_response: self.respond.is_some(), watch }
    }
}

impl<B> Clone for ConnectionLimits<B> {
    fn clone(&self) -> Self {
        Self { timer: self.timer.clone(), respond: self.respond.clone(), ..*self }
    }
}

impl<B> fmt::Debug for ConnectionLimits<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLimits")
            .field("header", &self.header)
            .field("request", &self.request)
            .field("response", &self.response)
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}

/// The error of a [`LimitedConnection`].
///
/// As an [`io::Error`], a limit that passed has the kind [`TimedOut`](io::ErrorKind::TimedOut).
///
/// # Examples
///
/// ```
/// use std::io;
/// use timer_adapters::hyper::{ConnectionError, Limit};
///
/// let error = ConnectionError::<hyper::Error>::TimedOut(Limit::KeepAlive);
/// assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError<E> {
    /// A limit passed, and the connection was dropped.
    TimedOut(Limit),
    /// The connection failed.
    Connection(E),
}

impl<E: fmt::Display> fmt::Display for ConnectionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(limit) => limit.fmt(f),
            Self::Connection(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for ConnectionError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TimedOut(_) => None,
            // The message of the connection's error is shown already, so its source comes next.
            Self::Connection(error) => error.source(),
        }
    }
}

/// The error of the connection may be a box, such as that of a connection of hyper-util that speaks
/// either version of HTTP. [`ConnectionError`] itself does not implement [`Error`] then.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<ConnectionError<E>> for io::Error {
    fn from(error: ConnectionError<E>) -> Self {
        match error {
            ConnectionError::TimedOut(limit) => Self::new(io::ErrorKind::TimedOut, limit.to_string()),
            ConnectionError::Connection(error) => Self::other(error),
        }
    }
}

pin_project! {
    /// A connection with limits, returned by [`ConnectionLimits::serve`].
    #[must_use = "futures do nothing unless polled"]
    pub struct LimitedConnection<C> {
        // `None` once it has ended.
        #[pin]
        connection: Option<C>,
        stages: Arc<Stages>,
        // Whether a late request has a response.
        has_response: bool,
        watch: Watch,
    }
}

impl<C> LimitedConnection<C> {
    /// Returns the connection, for example for `graceful_shutdown`. Returns `None` once it has
    /// ended.
    pub fn connection(self: Pin<&mut Self>) -> Option<Pin<&mut C>> {
        self.project().connection.as_pin_mut()
    }
}

impl<C, T, E> Future for LimitedConnection<C>
where
    C: Future<Output = Result<T, E>>,
{
    type Output = Result<T, ConnectionError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let Some(connection) = this.connection.as_mut().as_pin_mut() else { return Poll::Pending };
            let output = match connection.poll(cx) {
                Poll::Ready(output) => output.map_err(ConnectionError::Connection),
                Poll::Pending => {
                    let limit = ready!(this.watch.poll(cx, this.stages.word()));
                    // The next poll of the connection gets the response from the service's future.
                    if limit == Limit::Request && *this.has_response && this.stages.give_up_request() {
                        continue;
                    }
                    Err(ConnectionError::TimedOut(limit))
                }
            };
            this.connection.set(None);
            return Poll::Ready(output);
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for LimitedConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedConnection").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// The sleep of a connection, which follows its stages.
///
/// A move to a later deadline is cheap, and one to an earlier deadline is not. So each stage first
/// moves the sleep to the shortest of all limits from now. That is later, unless the former stage
/// has lasted longer than this limit. A stage that lasts longer then moves it on to its own limit.
struct Watch {
    sleep: Sleep,
    shortest: Duration,
    /// The limits of the stages beyond the shortest one, in the order of [`Stage`]. `None` for a
    /// stage without a limit.
    rests: [Option<Duration>; 4],
    /// The time from the deadline of the sleep to the end of the current stage.
    rest: Option<Duration>,
    /// The word for which the sleep was moved last. The initial value is the word of no connection.
    seen: usize,
}

impl Watch {
    /// Waits for the limit of the current stage and returns it when it has passed.
    fn poll(&mut self, cx: &mut Context<'_>, word: usize) -> Poll<Limit> {
        // The mark of a late request begins no new stage.
        let word = word & !GIVEN_UP;
        let stage = Stage::of(word);
        if self.seen != word {
            self.seen = word;
            self.rest = self.rests[stage as usize];
            if self.rest.is_some() {
                self.sleep.reset_after(self.shortest);
            }
        }
        let Some(rest) = &mut self.rest else { return Poll::Pending };
        loop {
            ready!(Pin::new(&mut self.sleep).poll(cx));
            if rest.is_zero() {
                return Poll::Ready(stage.limit());
            }
            let Some(end) = self.sleep.deadline().checked_add(core::mem::take(rest)) else {
                // The stage lasts longer than the clock.
                self.rest = None;
                return Poll::Pending;
            };
            self.sleep.reset_at(end);
        }
    }
}
