//! A server that answers each request after a while, and some never.

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

/// How the server treats requests.
#[derive(Clone)]
pub(crate) struct Manners {
    /// What it waits with.
    pub(crate) clock: Clock,
    /// A request is answered after this time.
    pub(crate) service: Duration,
    /// One request in so many is never answered; 0 is none.
    pub(crate) lose: u64,
}

/// Serves so many connections until all are closed.
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
            // The replies end after the requests, or with an error that is told below.
            _ = waiting.send((number, Instant::now()));
        }
    };
    while requests.next(&mut each).await? {}
    drop(waiting);
    replies.await?
}

/// All wait equally long, so the first that came is the first that is due. A batch is answered when its last is due.
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
