//! The thread that reads the store beside the keeper, and the reads of the keeper itself.

use crate::TimeoutId;
use crate::store::{
    Connect, Counts, DeadLetter, Filter, Micros, PendingRow, Reader, Store, StoreError, StoredPending, TopicDue,
};
use crate::transaction::Target;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time after which a connection that nobody uses is closed. An exporter that asks for the
/// timetable once a minute keeps it.
const IDLE: Duration = Duration::from_secs(90);

/// A call that reads. It returns `false` if the connection should be closed.
pub(crate) type Read = Box<dyn FnOnce(Result<&mut dyn Reader, StoreError>) -> bool + Send>;

/// The thread that reads a store. It starts with the first read, closes its connection after a
/// failure or when nobody has read for a while, and makes a new one for the next read.
pub(crate) struct ReaderThread {
    /// The thread's name, its function that connects, and its inbox, before it has started.
    start: Mutex<Option<(String, Connect, Inbox)>>,
    reads: Sender<Option<Read>>,
    /// Disconnected once the thread has ended.
    ended: Receiver<Infallible>,
}

/// The reads, or `None` for the end, and the sign that the thread lives.
type Inbox = (Receiver<Option<Read>>, Sender<Infallible>);

impl ReaderThread {
    /// Returns a thread that has not started. Without `connect` it never does.
    pub(crate) fn new(timer: &str, connect: Option<Connect>) -> Self {
        let (reads, inbox) = crossbeam_channel::unbounded();
        let (lives, ended) = crossbeam_channel::bounded(0);
        let start = connect.map(|connect| (format!("{timer}-read"), connect, (inbox, lives)));
        Self { start: Mutex::new(start), reads, ended }
    }

    /// Lets the thread call `read`. Returns it if there is no thread.
    pub(crate) fn send(&self, read: Read) -> Result<(), Read> {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((name, connect, inbox)) = start {
            let thread = std::thread::Builder::new().name(name);
            if let Err(error) = thread.spawn(move || run(connect, inbox)) {
                tracing::warn!(%error, "the keeper reads, because the thread for reads could not be started");
            }
        }
        self.reads.send(Some(read)).map_err(|refused| refused.0.unwrap_or_else(|| unreachable!("a read was sent")))
    }

    /// Ends the thread, and waits at most for `limit` until its connection is closed.
    pub(crate) fn close(&self, limit: Duration) {
        drop(self.start.lock().unwrap_or_else(PoisonError::into_inner).take());
        if self.reads.send(None).is_ok() {
            let _ended = self.ended.recv_timeout(limit);
        }
    }
}

fn run(mut connect: Connect, inbox: Inbox) {
    // The drop of `_lives` tells `close` that the thread has ended. The connection is dropped
    // before.
    let (reads, _lives) = inbox;
    let mut open: Option<Box<dyn Reader>> = None;
    loop {
        let limit = if open.is_some() { IDLE } else { Duration::MAX };
        match reads.recv_timeout(limit) {
            Ok(Some(read)) => {
                open = match open.take().map_or_else(&mut connect, Ok) {
                    Ok(mut reader) => read(Ok(&mut *reader)).then_some(reader),
                    Err(error) => {
                        read(Err(error));
                        None
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => open = None,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The store of the keeper as a reader. Rust 1.86 converts the references by itself.
pub(crate) struct StoreReader<'s>(pub(crate) &'s mut dyn Store);

impl Reader for StoreReader<'_> {
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        self.0.get(target)
    }

    fn list(
        &mut self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, StoreError> {
        self.0.list(filter, after, limit)
    }

    fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
        self.0.due_within(delays)
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.0.dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.0.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LONG: Duration = Duration::from_secs(60);

    /// A connection that takes a while to close.
    struct Slow(Arc<AtomicBool>);

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::park_timeout(Duration::from_millis(20));
            // ORDERING: Release, pairs with the load of the test.
            self.0.store(true, Ordering::Release);
        }
    }

    impl Reader for Slow {
        fn get(&mut self, _: &Target) -> Result<Option<StoredPending>, StoreError> {
            Ok(None)
        }

        fn list(&mut self, _: &Filter, _: Option<&PendingRow>, _: usize) -> Result<Vec<PendingRow>, StoreError> {
            Ok(Vec::new())
        }

        fn due_within(&mut self, _: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
            Ok(Vec::new())
        }

        fn dead_letters(
            &mut self,
            _: Option<&str>,
            _: Option<TimeoutId>,
            _: usize,
        ) -> Result<Vec<DeadLetter>, StoreError> {
            Ok(Vec::new())
        }

        fn counts(&mut self) -> Result<Counts, StoreError> {
            Ok(Counts::default())
        }
    }

    #[test]
    fn the_end_waits_for_the_connection() {
        let is_closed = Arc::new(AtomicBool::new(false));
        let connection = is_closed.clone();
        let thread = ReaderThread::new("t", Some(Box::new(move || Ok(Box::new(Slow(connection.clone()))))));
        assert!(thread.send(Box::new(|reader| reader.is_ok())).is_ok());
        thread.close(LONG);
        // ORDERING: Acquire, pairs with the store of the connection.
        assert!(is_closed.load(Ordering::Acquire));
    }
}
