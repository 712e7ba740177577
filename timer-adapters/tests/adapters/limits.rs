//! Limits of connections, on virtual time. The connections are pipes in memory, because time may
//! move while a socket delivers its bytes.

mod unread;

use super::{LONG, runtime};
use ::hyper::body::{Bytes, Frame, Incoming};
use ::hyper::server::conn::http1;
use ::hyper::service::service_fn;
use ::hyper::{Request, Response, StatusCode};
use ::tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use ::tokio::net::{TcpListener, TcpStream};
use ::tokio::spawn;
use ::tokio::task::{JoinHandle, yield_now};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};
use timer_adapters::hyper::{ConnectionError, ConnectionLimits, Limit, LimitedIo};
use timer_adapters::tokio::paused;
use timer_core::{Timer, time};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const HEADER: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(5);
const RESPONSE: Duration = Duration::from_secs(7);
const KEEP_ALIVE: Duration = Duration::from_secs(11);

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Ended = JoinHandle<Result<(), ConnectionError<::hyper::Error>>>;

fn full(bytes: impl Into<Bytes>) -> Response<Body> {
    Response::new(Full::new(bytes.into()).boxed_unsync())
}

/// Returns the time that has passed on the timer of the thread.
fn since(begin: Instant) -> Duration {
    time::now() - begin
}

fn limits() -> ConnectionLimits<Body> {
    ConnectionLimits::new(Timer::current()).header(HEADER).request(REQUEST).response(RESPONSE).keep_alive(KEEP_ALIVE)
}

/// Serves one end of a pipe that holds `capacity` bytes, and returns the other end.
fn serve<F>(
    limits: &ConnectionLimits<Body>,
    capacity: usize,
    handle: impl Fn(Request<Incoming>) -> F + Send + 'static,
) -> (DuplexStream, Ended)
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (client, server) = duplex(capacity);
    let service = service_fn(move |request| {
        let response = handle(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let connection =
        limits.serve(TokioIo::new(server), service, |io, service| http1::Builder::new().serve_connection(io, service));
    (client, spawn(connection))
}

async fn hello(_: Request<Incoming>) -> Response<Body> {
    yield_now().await;
    full("hello")
}

async fn read_hello(client: &mut DuplexStream) {
    let mut reply = Vec::new();
    while !reply.ends_with(b"hello") {
        assert!(client.read_buf(&mut reply).await.unwrap() > 0, "the connection was closed");
    }
}

/// Asserts that the connection ends by `limit`, `after` a time from `begin`.
async fn assert_ends(mut client: DuplexStream, ended: Ended, limit: Limit, begin: Instant, after: Duration) {
    let error = ended.await.unwrap().unwrap_err();
    assert_eq!(since(begin), after);
    assert!(matches!(error, ConnectionError::TimedOut(passed) if passed == limit), "{error}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
    let _ = client.read_to_end(&mut Vec::new()).await.unwrap();
}

#[test]
fn a_silent_client_has_the_header_limit() {
    paused(async {
        let begin = time::now();
        let (client, ended) = serve(&limits(), 1024, hello);
        assert_ends(client, ended, Limit::Header, begin, HEADER).await;
    });
}

#[test]
fn a_client_that_dribbles_its_header_has_the_header_limit() {
    paused(async {
        for requests in [0, 1] {
            let (mut client, ended) = serve(&limits(), 1024, hello);
            for _ in 0..requests {
                client.write_all(GET).await.unwrap();
                read_hello(&mut client).await;
                time::sleep(KEEP_ALIVE - MILLI).await;
            }
            let begin = time::now();
            let mut sent = GET[..GET.len() - 2].iter();
            while since(begin) + 200 * MILLI < HEADER {
                client.write_all(&[*sent.next().unwrap()]).await.unwrap();
                time::sleep(200 * MILLI).await;
            }
            assert_ends(client, ended, Limit::Header, begin, HEADER).await;
        }
    });
}

#[test]
fn an_idle_client_has_the_keep_alive_limit() {
    paused(async {
        let (mut client, ended) = serve(&limits(), 1024, hello);
        for _ in 0..5 {
            client.write_all(GET).await.unwrap();
            read_hello(&mut client).await;
            time::sleep(KEEP_ALIVE - MILLI).await;
        }
        client.write_all(GET).await.unwrap();
        read_hello(&mut client).await;
        assert_ends(client, ended, Limit::KeepAlive, time::now(), KEEP_ALIVE).await;
    });
}

#[test]
fn empty_lines_before_a_request_begin_no_header() {
    paused(async {
        let (mut client, ended) = serve(&limits(), 1024, hello);
        for _ in 0..3 {
            client.write_all(GET).await.unwrap();
            read_hello(&mut client).await;
            client.write_all(b"\r\n").await.unwrap();
            time::sleep(HEADER + MILLI).await;
        }
        client.write_all(b"\r\n").await.unwrap();
        time::sleep(KEEP_ALIVE - HEADER - 2 * MILLI).await;
        assert_ends(client, ended, Limit::KeepAlive, time::now(), MILLI).await;
    });
}

/// Tells when a handler ends.
struct Told(Option<::tokio::sync::oneshot::Sender<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.take().map(|told| told.send(()));
    }
}

#[test]
fn a_slow_handler_has_the_request_limit() {
    paused(async {
        let (mut client, ended) = serve(&limits(), 1024, |_| std::future::pending());
        time::sleep(HEADER - MILLI).await;
        client.write_all(GET).await.unwrap();
        assert_ends(client, ended, Limit::Request, time::now(), REQUEST).await;
    });
}

#[test]
fn a_late_request_can_have_a_response() {
    paused(async {
        let (told, dropped) = ::tokio::sync::oneshot::channel();
        let told = std::sync::Mutex::new(Some(Told(Some(told))));
        let limits = limits().late_response(|| {
            let mut response = full("late");
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        });
        let (mut client, ended) = serve(&limits, 1024, move |_| {
            let told = told.lock().unwrap().take();
            async move {
                if told.is_some() {
                    std::future::pending::<()>().await;
                }
                full("hello")
            }
        });
        let begin = time::now();
        client.write_all(GET).await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"late") {
            assert!(client.read_buf(&mut reply).await.unwrap() > 0);
        }
        assert!(reply.starts_with(b"HTTP/1.1 503 "));
        assert_eq!(since(begin), REQUEST);
        dropped.await.unwrap();
        client.write_all(GET).await.unwrap();
        read_hello(&mut client).await;
        assert_ends(client, ended, Limit::KeepAlive, time::now(), KEEP_ALIVE).await;
    });
}

#[test]
fn each_pipelined_request_has_its_own_limit() {
    paused(async {
        let (mut client, ended) = serve(&limits(), 1024, |request| async move {
            if request.uri() != "/now" {
                time::sleep(REQUEST - MILLI).await;
            }
            full("hello")
        });
        client.write_all(b"GET /now HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        client.write_all(&GET.repeat(3)).await.unwrap();
        let begin = time::now();
        for _ in 0..4 {
            let mut reply = Vec::new();
            while !reply.ends_with(b"hello") {
                reply.push(client.read_u8().await.unwrap());
            }
        }
        assert_eq!(since(begin), 3 * (REQUEST - MILLI));
        assert_ends(client, ended, Limit::KeepAlive, time::now(), KEEP_ALIVE).await;
    });
}

/// Responds with frames that take `pause` each.
fn frames(count: u32, pause: Duration) -> Response<Body> {
    let frames = futures::stream::unfold(0, move |nth| async move {
        time::sleep(pause).await;
        (nth < count).then(|| (Ok(Frame::data(Bytes::from_static(b"frame"))), nth + 1))
    });
    Response::new(StreamBody::new(frames).boxed_unsync())
}

#[test]
fn each_frame_of_a_response_has_the_response_limit() {
    paused(async {
        let (mut client, ended) = serve(&limits(), 1024, |request| async move {
            let pause = if request.uri() == "/slow" { RESPONSE + MILLI } else { RESPONSE - MILLI };
            frames(4, pause)
        });
        let begin = time::now();
        client.write_all(GET).await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n0\r\n\r\n") {
            assert!(client.read_buf(&mut reply).await.unwrap() > 0);
        }
        assert_eq!(since(begin), 5 * (RESPONSE - MILLI));
        time::sleep(KEEP_ALIVE - MILLI).await;
        client.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        assert_ends(client, ended, Limit::Response, time::now(), RESPONSE).await;
    });
}

#[test]
fn a_connection_without_limits_stays() {
    paused(async {
        let limits = ConnectionLimits::new(Timer::current());
        let (mut client, ended) = serve(&limits, 1024, |_| async { frames(2, 3600 * SECOND) });
        for byte in GET {
            client.write_all(&[*byte]).await.unwrap();
            time::sleep(3600 * SECOND).await;
        }
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n0\r\n\r\n") {
            assert!(client.read_buf(&mut reply).await.unwrap() > 0);
        }
        time::sleep(3600 * SECOND).await;
        drop(client);
        ended.await.unwrap().unwrap();
    });
}

#[test]
fn a_limit_may_be_longer_than_the_clock() {
    paused(async {
        let (mut client, ended) = serve(&limits().keep_alive(Duration::MAX), 1024, hello);
        client.write_all(GET).await.unwrap();
        read_hello(&mut client).await;
        time::sleep(3600 * SECOND).await;
        client.write_all(GET).await.unwrap();
        read_hello(&mut client).await;
        drop(client);
        ended.await.unwrap().unwrap();
    });
}

#[test]
fn no_limit_applies_after_an_upgrade() {
    paused(async {
        let (mut client, server) = duplex(1024);
        let service = service_fn(|request: Request<Incoming>| async {
            spawn(async {
                let upgraded = ::hyper::upgrade::on(request).await.unwrap();
                let parts = upgraded.downcast::<LimitedIo<TokioIo<DuplexStream>>>().unwrap();
                let mut server = parts.io.into_inner().into_inner();
                while let Ok(byte) = server.read_u8().await {
                    server.write_u8(byte).await.unwrap();
                }
            });
            let mut response = full("");
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("upgrade", "echo".parse().unwrap());
            Ok::<_, Infallible>(response)
        });
        let connection = limits().serve(TokioIo::new(server), service, |io, service| {
            http1::Builder::new().serve_connection(io, service).with_upgrades()
        });
        let ended = spawn(connection);
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n").await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n\r\n") {
            assert!(client.read_buf(&mut reply).await.unwrap() > 0);
        }
        ended.await.unwrap().unwrap();
        for byte in 0..3 {
            time::sleep(3600 * SECOND).await;
            client.write_u8(byte).await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), byte);
        }
    });
}

#[test]
fn a_connection_can_be_shut_down_gracefully() {
    paused(async {
        let (client, server) = duplex(1024);
        let service = service_fn(|request| async { Ok::<_, Infallible>(hello(request).await) });
        let connection = limits()
            .serve(TokioIo::new(server), service, |io, service| http1::Builder::new().serve_connection(io, service));
        let mut connection = Box::pin(connection);
        assert!(futures::FutureExt::now_or_never(connection.as_mut()).is_none());
        connection.as_mut().connection().unwrap().graceful_shutdown();
        connection.as_mut().await.unwrap();
        assert!(connection.as_mut().connection().is_none());
        drop(client);
    });
}

#[test]
fn all_requests_of_a_connection_share_one_entry() {
    runtime().block_on(async {
        let timer = Timer::new();
        let limits = ConnectionLimits::new(timer.clone()).header(LONG).request(2 * LONG).keep_alive(3 * LONG);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let service = service_fn(|request| async { Ok::<_, Infallible>(hello(request).await) });
        let ended =
            spawn(limits.serve(TokioIo::new(server), service, |io, service| {
                http1::Builder::new().serve_connection(io, service)
            }));
        for _ in 0..50 {
            client.write_all(GET).await.unwrap();
            let mut reply = Vec::new();
            while !reply.ends_with(b"hello") {
                assert!(client.read_buf(&mut reply).await.unwrap() > 0);
            }
        }
        let stats = timer.stats();
        assert_eq!((stats.scheduled, timer.pending_timeouts()), (1, 1));
        drop(client);
        ended.await.unwrap().unwrap();
        assert_eq!(timer.pending_timeouts(), 0, "no deadline is left behind");
    });
}

#[test]
fn a_limit_closes_a_socket() {
    runtime().block_on(async {
        let timer = Timer::new();
        let limit = Duration::from_millis(30);
        let limits = ConnectionLimits::new(timer.clone()).header(LONG).keep_alive(limit);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let service = service_fn(|request| async { Ok::<_, Infallible>(hello(request).await) });
        let ended =
            spawn(limits.serve(TokioIo::new(server), service, |io, service| {
                http1::Builder::new().serve_connection(io, service)
            }));
        client.write_all(GET).await.unwrap();
        let begin = Instant::now();
        let mut reply = Vec::new();
        let closed = time::timeout(LONG, client.read_to_end(&mut reply)).await;
        assert!(closed.is_ok_and(|read| read.is_ok()), "the server kept the connection");
        assert!(reply.ends_with(b"hello") && begin.elapsed() >= limit);
        assert!(matches!(ended.await.unwrap(), Err(ConnectionError::TimedOut(Limit::KeepAlive))));
        assert_eq!(timer.pending_timeouts(), 0);
    });
}
