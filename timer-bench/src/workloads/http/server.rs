//! The server, and the measurement of its CPU time.

use super::{Load, tokio_limits};
use crate::process::cpu;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use timer_adapters::hyper::{ConnectionLimits, HyperTimer};
use timer_core::Timer;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::yield_now;

/// The time that a client has for a header, and the server for a response.
const LIMIT: Duration = Duration::from_secs(30);

/// The number of the runtime's threads.
const WORKERS: usize = 2;

/// The source of the server's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeouts {
    /// The timer of this workspace.
    Ours,
    /// The timer of the runtime.
    Tokio,
    /// A timer that does nothing, or no limits with [`Mount::Limits`].
    None,
}

/// The place of the timer in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    /// hyper makes the sleeps of headers, and each request has a timeout.
    Hyper,
    /// A connection has one sleep for all of its limits.
    Limits,
}

/// The client process, which ends with the measurement.
struct Clients(Child);

impl Drop for Clients {
    fn drop(&mut self) {
        // It has ended by itself if nothing failed.
        let _: io::Result<()> = self.0.kill();
        let _: io::Result<std::process::ExitStatus> = self.0.wait();
    }
}

/// Serves the load and returns the CPU time of a request in nanoseconds.
pub(super) fn serve(timeouts: Timeouts, mount: Mount, load: Load) -> io::Result<f64> {
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let timer = Timer::global().clone();
    let served = Arc::new(AtomicUsize::new(0));
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let port = listener.local_addr()?.port();
    runtime.spawn(accept(listener, timeouts, mount, timer, served.clone()));
    let mut clients = Command::new(std::env::current_exe()?);
    clients.args(["timer", "W20:clients", &format!("port={port}")]);
    clients.args([format!("n={}", load.connections), format!("requests={}", load.requests)]);
    let mut clients = Clients(clients.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    // The first request of each connection is not measured.
    let mut until = |count: usize| -> io::Result<()> {
        // ORDERING: Relaxed, a count on which nothing else depends.
        while served.load(Ordering::Relaxed) < count {
            if clients.0.try_wait()?.is_some_and(|status| !status.success()) {
                return Err(io::Error::other("the clients failed"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    until(load.connections)?;
    let before = cpu();
    until(load.connections * (1 + load.requests))?;
    let spent = cpu() - before;
    runtime.shutdown_background();
    Ok(spent.as_nanos() as f64 / (load.connections * load.requests).max(1) as f64)
}

async fn accept(listener: TcpListener, timeouts: Timeouts, mount: Mount, timer: Timer, served: Arc<AtomicUsize>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (timer, served) = (timer.clone(), served.clone());
        match mount {
            Mount::Hyper => drop(tokio::spawn(connection(socket, timeouts, timer, served))),
            Mount::Limits => drop(tokio::spawn(limited(socket, timeouts, timer, served))),
        }
    }
}

/// Serves a connection that has one sleep for all of its limits, or no limits.
async fn limited(socket: TcpStream, timeouts: Timeouts, timer: Timer, served: Arc<AtomicUsize>) {
    let service = service_fn(|request| {
        // ORDERING: Relaxed, a count on which nothing else depends.
        served.fetch_add(1, Ordering::Relaxed);
        answer(request, Timeouts::None, &timer)
    });
    let (io, builder) = (TokioIo::new(socket), http1::Builder::new());
    // A connection that its client closes ends with an error or without one.
    let _: bool = match timeouts {
        Timeouts::Ours => {
            let limits = ConnectionLimits::new(timer.clone()).header(LIMIT).request(LIMIT).keep_alive(LIMIT);
            let limits = limits.late_response(Response::default);
            limits.serve(io, service, |io, service| builder.serve_connection(io, service)).await.is_ok()
        }
        Timeouts::Tokio => {
            let limits = tokio_limits::limits().header(LIMIT).request(LIMIT).keep_alive(LIMIT);
            let limits = limits.late_response(Response::default);
            limits.serve(io, service, |io, service| builder.serve_connection(io, service)).await.is_ok()
        }
        Timeouts::None => builder.serve_connection(io, service).await.is_ok(),
    };
}

async fn connection(socket: TcpStream, timeouts: Timeouts, timer: Timer, served: Arc<AtomicUsize>) {
    let mut builder = http1::Builder::new();
    match timeouts {
        Timeouts::Ours => builder.timer(HyperTimer::new(timer.clone())).header_read_timeout(LIMIT),
        Timeouts::Tokio => builder.timer(TokioTimer::new()).header_read_timeout(LIMIT),
        Timeouts::None => builder.timer(NoTimer).header_read_timeout(LIMIT),
    };
    let service = service_fn(|request| {
        // ORDERING: Relaxed, a count on which nothing else depends.
        served.fetch_add(1, Ordering::Relaxed);
        answer(request, timeouts, &timer)
    });
    // A connection that its client closes ends with an error or without one.
    let _: hyper::Result<()> = builder.serve_connection(TokioIo::new(socket), service).await;
}

/// A timer whose sleeps never end.
#[derive(Debug)]
struct NoTimer;

impl hyper::rt::Timer for NoTimer {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(EndlessSleep)
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(EndlessSleep)
    }
}

/// A sleep that never ends. It occupies no memory.
struct EndlessSleep;

impl hyper::rt::Sleep for EndlessSleep {}

impl Future for EndlessSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

async fn answer(_: Request<Incoming>, timeouts: Timeouts, timer: &Timer) -> Result<Response<Full<Bytes>>, Infallible> {
    let work = async {
        yield_now().await;
        Response::new(Full::from("hello"))
    };
    let response = match timeouts {
        Timeouts::Ours => timer.timeout(LIMIT, work).await.ok(),
        Timeouts::Tokio => tokio::time::timeout(LIMIT, work).await.ok(),
        Timeouts::None => Some(work.await),
    };
    Ok(response.unwrap_or_default())
}
