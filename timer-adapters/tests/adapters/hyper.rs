//! hyper servers and clients on sockets: timeouts of headers, of keep-alive and of the pool.

use super::{LONG, runtime};
use ::hyper::body::Incoming;
use ::hyper::rt::Timer as _;
use ::hyper::server::conn::http1;
use ::hyper::service::service_fn;
use ::hyper::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timer_adapters::hyper::HyperTimer;
use timer_core::{Timer, time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Body = Full<&'static [u8]>;

async fn hello(_: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Full::new(b"hello".as_slice())))
}

/// A server that closes a connection if a header takes too long. It counts the connections that
/// ended.
async fn serve(timer: HyperTimer, limit: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = ended.clone();
    tokio::spawn(async move {
        loop {
            let Ok((socket, _)) = listener.accept().await else { return };
            let timer = timer.clone();
            let counter = counter.clone();
            tokio::spawn(async move {
                let mut server = http1::Builder::new();
                server.timer(timer).header_read_timeout(limit);
                let _ = server.serve_connection(TokioIo::new(socket), service_fn(hello)).await;
                // ORDERING: Relaxed, only counted; the test reads it after the socket was closed.
                counter.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    (address, ended)
}

/// Reads until the server closes the connection, and returns the time that took.
async fn until_closed(socket: &mut TcpStream) -> (Vec<u8>, Duration) {
    let begin = Instant::now();
    let mut read = Vec::new();
    let closed = time::timeout(LONG, socket.read_to_end(&mut read)).await;
    assert!(closed.is_ok(), "the server kept the connection");
    (read, begin.elapsed())
}

const LIMIT: Duration = Duration::from_millis(50);

#[test]
fn a_silent_client_is_disconnected() {
    runtime().block_on(async {
        let timer = Timer::new();
        let (address, ended) = serve(HyperTimer::new(timer.clone()), LIMIT).await;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let (_, took) = until_closed(&mut socket).await;
        assert!(took >= LIMIT, "{took:?}");
        while ended.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(timer.pending_timeouts(), 0);
    });
}

#[test]
fn a_client_that_dribbles_its_header_is_disconnected() {
    runtime().block_on(async {
        let (address, _) = serve(HyperTimer::global(), LIMIT).await;
        let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
        let begin = Instant::now();
        let dribble = async {
            write.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            let mut ticks = time::interval(Duration::from_millis(5));
            loop {
                ticks.tick().await;
                if write.write_all(b"x: y\r\n").await.is_err() {
                    return;
                }
            }
        };
        let closed = async {
            let mut all = Vec::new();
            let _ = read.read_to_end(&mut all).await;
        };
        let ended = futures::future::select(Box::pin(dribble), Box::pin(closed));
        assert!(time::timeout(LONG, ended).await.is_ok());
        assert!(begin.elapsed() >= LIMIT);
    });
}

/// Sends five requests, each after half of the limit, so only a deadline that moves lets all of
/// them through. Returns `false` if the connection was closed before. Otherwise waits until it is
/// closed.
async fn is_kept_alive(socket: &mut TcpStream) -> bool {
    for _ in 0..5 {
        time::sleep(LIMIT / 2).await;
        let mut reply = Vec::new();
        let sent = socket.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        while sent.is_ok() && !reply.ends_with(b"hello") && socket.read_buf(&mut reply).await.is_ok_and(|n| n > 0) {}
        if !reply.ends_with(b"hello") {
            return false;
        }
    }
    until_closed(socket).await;
    true
}

#[test]
fn an_idle_keep_alive_connection_is_closed() {
    runtime().block_on(async {
        let timer = Timer::new();
        let (address, _) = serve(HyperTimer::new(timer.clone()), LIMIT).await;
        // A thread that is held up lets a connection idle for longer than the limit.
        let mut is_kept = false;
        for _ in 0..20 {
            let mut socket = TcpStream::connect(address).await.unwrap();
            is_kept = is_kept_alive(&mut socket).await;
            if is_kept {
                break;
            }
        }
        assert!(is_kept);
        assert_eq!(timer.pending_timeouts(), 0, "no deadline is left behind");
    });
}

#[test]
fn an_idle_connection_leaves_the_pool() {
    runtime().block_on(async {
        let (address, ended) = serve(HyperTimer::global(), LONG).await;
        let timer = Timer::new();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(HyperTimer::new(timer))
            .pool_idle_timeout(LIMIT)
            .build_http::<Empty<&'static [u8]>>();
        let uri: ::hyper::Uri = format!("http://{address}/").parse().unwrap();
        let reply = client.get(uri.clone()).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(reply.to_bytes(), "hello");
        let idle = async {
            while ended.load(Ordering::Relaxed) == 0 {
                time::sleep(Duration::from_millis(2)).await;
            }
        };
        assert!(time::timeout(LONG, idle).await.is_ok(), "the pool kept the connection");
        assert!(client.get(uri).await.unwrap().status().is_success(), "the next request opens another");
    });
}

/// A sleep of another timer.
struct Never;

impl ::hyper::rt::Sleep for Never {}

impl Future for Never {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

#[test]
fn a_reset_moves_the_same_entry() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let adapter = HyperTimer::new(timer);
    let mut sleep = adapter.sleep(Duration::from_secs(1));
    assert!(futures::FutureExt::now_or_never(&mut sleep).is_none());
    for _ in 0..10 {
        driver.advance(Duration::from_millis(900));
        adapter.reset(&mut sleep, adapter.now() + Duration::from_secs(1));
    }
    assert!(futures::FutureExt::now_or_never(&mut sleep).is_none());
    driver.advance(Duration::from_secs(1));
    assert!(futures::FutureExt::now_or_never(&mut sleep).is_some());
    let mut foreign: Pin<Box<dyn ::hyper::rt::Sleep>> = Box::pin(Never);
    adapter.reset(&mut foreign, adapter.now());
    assert!(futures::FutureExt::now_or_never(foreign).is_some(), "a sleep of another timer is replaced");
}
