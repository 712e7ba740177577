//! The clients: some make requests and then keep their connection idle, and some send nothing at
//! all.

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use indicatif::ProgressBar;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The results of one or more clients.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) answered: u64,
    pub(crate) timed_out: u64,
    /// Responses that the request does not explain.
    pub(crate) wrong: u64,
    /// How long the server kept connections that sent nothing.
    pub(crate) idle: Vec<Duration>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.answered += other.answered;
        self.timed_out += other.timed_out;
        self.wrong += other.wrong;
        self.idle.extend(other.idle);
    }
}

/// Makes `requests` requests, of which one in `stuck` never ends by itself, and waits until the
/// server closes the idle connection.
pub(crate) async fn active(
    server: SocketAddr,
    requests: u64,
    stuck: u64,
    bar: ProgressBar,
) -> Result<Tally, Box<dyn Error + Send + Sync>> {
    let socket = TcpStream::connect(server).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    let connection = tokio::spawn(connection);
    let mut tally = Tally::default();
    for nth in 1..=requests {
        let is_stuck = nth.is_multiple_of(stuck);
        let uri = if is_stuck { "/stuck" } else { "/" };
        let request = Request::get(uri).header("host", "localhost").body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        let expected = if is_stuck { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::OK };
        tally.wrong += u64::from(response.status() != expected);
        tally.timed_out += u64::from(response.status() == StatusCode::GATEWAY_TIMEOUT);
        tally.answered += u64::from(response.status() == StatusCode::OK);
        response.into_body().collect().await?;
        bar.inc(1);
    }
    let idle_since = Instant::now();
    // The connection ends when the server closes it. An error is a way to close it as well.
    let _ = connection.await?;
    tally.idle.push(idle_since.elapsed());
    Ok(tally)
}

/// Connects, sends nothing, and waits until the server closes the connection.
pub(crate) async fn silent(server: SocketAddr) -> Result<Tally, Box<dyn Error + Send + Sync>> {
    let mut socket = TcpStream::connect(server).await?;
    let since = Instant::now();
    socket.read_to_end(&mut Vec::new()).await?;
    Ok(Tally { idle: vec![since.elapsed()], ..Tally::default() })
}
