//! A server that answers each request after a while, and some requests never.

use std::io;
use std::time::{Duration, Instant};

use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use crate::call;
use crate::clock::Clock;
use crate::wire::{Incoming, send};

const BATCH: usize = 4096;

/// The behavior of the server.
#[derive(Clone)]
pub(crate) struct Manners {
    /// The timer of the delays.
    pub(crate) clock: Clock,
    /// The time after which a request is answered.
    pub(crate) service: Duration,
    /// One request in this many is never answered. With 0 all are answered.
    pub(crate) lose: u64,
}

/// Serves the given number of connections until all are closed.
pub(crate) async fn serve(listener: TcpListener, connections: usize, manners: Manners) -> io::Result<()> {
    let mut open = JoinSet::new();
    for _ in 0..connections {
        let (stream, _) = listener.accept().await?;
        open.spawn(connection(stream, manners.clone()));
    }
    while let Some(closed) = open.join_next().await {
        closed??;
    }
    Ok(())
}

async fn connection(stream: TcpStream, manners: Manners) -> io::Result<()> {
    let (requests, out) = stream.into_split();
    let (waiting, due) = unbounded_channel();
    let lose = manners.lose;
    let replies = tokio::spawn(reply(due, out, manners));
    let mut requests = Incoming::new(requests);
    let mut each = |number| {
        if lose == 0 || !(call::round(number) + call::caller(number)).is_multiple_of(lose) {
            // The replies end after the requests, or with an error that is reported below.
            _ = waiting.send((number, Instant::now()));
        }
    };
    while requests.next(&mut each).await? {}
    drop(waiting);
    replies.await?
}

/// Sends the replies. All wait equally long, so they are due in the order of the requests. A batch
/// is sent when its last reply is due.
async fn reply(
    mut due: UnboundedReceiver<(u64, Instant)>,
    mut out: OwnedWriteHalf,
    manners: Manners,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    while due.recv_many(&mut batch, BATCH).await > 0 {
        let waited = batch.last().map_or(Duration::ZERO, |(_, came)| came.elapsed());
        if let Some(wait) = manners.service.checked_sub(waited) {
            manners.clock.sleep(wait).await;
        }
        send(&mut out, batch.drain(..).map(|(number, _)| number)).await?;
    }
    Ok(())
}
