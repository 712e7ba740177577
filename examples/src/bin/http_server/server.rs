//! The server, in which each connection has a header timeout and each request has its own timeout.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::io;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use timer_adapters::hyper::ConnectionLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::clock::Clock;

/// The limits of the server.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// From the beginning of the wait for a request to the end of its header.
    pub(crate) header: Duration,
    /// From the header to the response.
    pub(crate) request: Duration,
}

/// Accepts this number of connections and returns when all of them are closed.
pub(crate) async fn serve(listener: TcpListener, connections: usize, limits: Limits, clock: Clock) -> io::Result<()> {
    let mut open = JoinSet::new();
    for _ in 0..connections {
        let (socket, _) = listener.accept().await?;
        let clock = clock.clone();
        open.spawn(serve_connection(socket, limits, clock));
    }
    while open.join_next().await.is_some() {}
    Ok(())
}

/// Serves a connection. If a timeout closes it, it ends with an error, as intended here.
async fn serve_connection(socket: TcpStream, limits: Limits, clock: Clock) {
    let io = TokioIo::new(socket);
    if let Clock::Limits(timer) = &clock {
        let service =
            service_fn(
                |request: Request<Incoming>| async move { Ok::<_, Infallible>(work(request.uri().path()).await) },
            );
        let of_connection = ConnectionLimits::new(timer.clone())
            .header(limits.header)
            .keep_alive(limits.header)
            .request(limits.request)
            .late_response(too_late);
        let server = http1::Builder::new();
        let _ = of_connection.serve(io, service, |io, service| server.serve_connection(io, service)).await;
    } else {
        let service = service_fn(|request| answer(request, limits.request, &clock));
        let _ = clock.connections(limits.header).serve_connection(io, service).await;
    }
}

/// Answers a request, with 504 if that takes too long.
async fn answer(
    request: Request<Incoming>,
    limit: Duration,
    clock: &Clock,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(clock.timeout(limit, work(request.uri().path())).await.unwrap_or_else(too_late))
}

fn too_late() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("the request took too long"));
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    response
}

/// The work of a request, which never ends for one path.
async fn work(path: &str) -> Response<Full<Bytes>> {
    if path == "/stuck" { pending().await } else { ready(Response::new(Full::from("hello"))).await }
}
