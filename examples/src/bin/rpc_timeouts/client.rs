//! A connection that many calls share. Replies find their calls by number.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::wire::{Incoming, send};

const BATCH: usize = 4096;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<()>>>>;

/// A connection to the server, which closes when it is dropped.
pub(crate) struct Connection {
    waiting: Waiting,
    requests: UnboundedSender<u64>,
}

/// The error of a call whose connection has ended.
pub(crate) struct Broken;

impl Connection {
    /// Connects. The task ends when the connection closes, and returns the number of replies for
    /// calls that had been given up.
    pub(crate) async fn open(server: SocketAddr) -> io::Result<(Self, JoinHandle<io::Result<u64>>)> {
        let (replies, out) = TcpStream::connect(server).await?.into_split();
        let waiting = Waiting::default();
        let (requests, queue) = unbounded_channel();
        tokio::spawn(write(queue, out));
        let reading = tokio::spawn(read(replies, waiting.clone()));
        Ok((Self { waiting, requests }, reading))
    }

    /// Sends a request and waits for its reply. A caller that gives up calls
    /// [`forget`](Self::forget).
    pub(crate) async fn call(&self, number: u64) -> Result<(), Broken> {
        let (reply, replied) = oneshot::channel();
        self.waiting.lock().insert(number, reply);
        self.requests.send(number).map_err(|_| Broken)?;
        replied.await.map_err(|_| Broken)
    }

    /// Gives a call up, so that its reply counts as late.
    pub(crate) fn forget(&self, number: u64) {
        self.waiting.lock().remove(&number);
    }
}

/// Sends the queued numbers. An error ends the connection, and `read` reports it.
async fn write(mut queue: UnboundedReceiver<u64>, mut out: OwnedWriteHalf) {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        if send(&mut out, batch.drain(..)).await.is_err() {
            return;
        }
    }
}

async fn read(replies: OwnedReadHalf, waiting: Waiting) -> io::Result<u64> {
    let mut replies = Incoming::new(replies);
    let mut late = 0;
    let mut each = |number| match waiting.lock().remove(&number) {
        // The caller may have given up at this moment, and it counts that itself.
        Some(reply) => _ = reply.send(()),
        None => late += 1,
    };
    let end = loop {
        match replies.next(&mut each).await {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // The remaining calls find their connection broken.
    waiting.lock().clear();
    end.map(|()| late)
}
