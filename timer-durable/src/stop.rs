//! Stopping a timer, and dropping its last handle.

use crate::engine::{Message, is_in_handler, is_keeper};
use crate::error::Error;
use crate::timer::{DurableTimer, Engine, Inner};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The time beyond its limit for which a stop waits for the keeper. The keeper ends within it
/// unless the store hangs.
const GRACE: Duration = Duration::from_millis(250);

/// The result of [`DurableTimer::stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopReport {
    /// Handlers that had not ended at the limit. Their timeouts run again after the next start,
    /// with a higher attempt. Those that still wait for a thread do not start any more, and their
    /// attempts do not count unless the store fails.
    pub unfinished: usize,
    /// Whether the store was handed back. If it hangs beyond the limit, it is handed back when it
    /// answers. Until then a file stays in use, and shards are taken over when the lease is over.
    /// The same is true of shards if the store could not be reached. A keeper that has ended by a
    /// panic has closed the store without handing its shards back.
    pub is_released: bool,
}

/// The shutdown of a timer, which its handles, its keeper and its handlers see.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// The report of the keeper, once it has ended.
    pub(crate) report: OnceLock<StopReport>,
    is_given_up: AtomicBool,
}

impl Shutdown {
    /// Returns `true` if `stop` has given up a store that hangs. No handler starts after that.
    pub(crate) fn is_given_up(&self) -> bool {
        // ORDERING: Acquire, pairs with the store in `stop`.
        self.is_given_up.load(Ordering::Acquire)
    }
}

impl DurableTimer {
    /// Stops the timer: begins nothing, waits for the running handlers up to `limit`, writes their
    /// ends, and hands the store back. Pending timeouts stay in the store. If several calls wait,
    /// the earliest of their limits counts for all of them. A call after the end returns the report
    /// of the first one.
    ///
    /// Returns at most a quarter of a second after the limit, also if the store hangs. On virtual
    /// time the call returns at once, because only the driver runs handlers.
    ///
    /// A handler must not wait for a thread that calls this without a limit, because the call waits
    /// for the handler.
    ///
    /// # Errors
    ///
    /// [`Error::InHandler`] in a handler of this timer, and [`Error::OnKeeper`] on the keeper's own
    /// thread. Nothing was stopped. A handler can drop its handle, or let another thread call this.
    pub fn stop(&self, limit: Duration) -> Result<StopReport, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let keeper = &self.inner.parts.keeper;
        if is_in_handler(keeper) {
            return Err(Error::InHandler);
        }
        let (reply, answer) = oneshot::channel();
        let until = match &self.inner.engine {
            Engine::Thread(_) => Instant::now().checked_add(limit),
            Engine::Manual(shared) => {
                // Nobody else takes turns, so nothing can end after this one.
                shared.settle();
                Some(Instant::now())
            }
        };
        if keeper.send(Message::Stop { until, reply }).is_err() {
            return Ok(self.inner.report());
        }
        self.settle();
        let answer = match until.and_then(|until| until.checked_add(GRACE)) {
            Some(until) => answer.recv_deadline(until),
            None => answer.recv().map_err(|_| oneshot::RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(report) => {
                self.inner.join();
                Ok(report)
            }
            // The keeper has ended before it saw the message.
            Err(oneshot::RecvTimeoutError::Disconnected) => Ok(self.inner.report()),
            Err(oneshot::RecvTimeoutError::Timeout) => {
                // ORDERING: Release, pairs with `is_given_up`.
                self.inner.parts.shutdown.is_given_up.store(true, Ordering::Release);
                self.inner.abandon();
                let unfinished = usize::try_from(self.stats().running).unwrap_or(usize::MAX);
                Ok(StopReport { unfinished, is_released: false })
            }
        }
    }
}

impl Inner {
    /// Returns the report of a keeper that has ended.
    fn report(&self) -> StopReport {
        // A keeper that `ManualDurableDriver::crash` has dropped has left no report.
        self.parts.shutdown.report.get().copied().unwrap_or(StopReport { unfinished: 0, is_released: true })
    }

    /// Waits for the keeper's thread, unless this is the thread.
    fn join(&self) {
        if let Engine::Thread(thread) = &self.engine {
            let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread.filter(|_| !is_keeper()) {
                let _ended = thread.join();
            }
        }
    }

    /// Leaves the keeper's thread to itself. It ends when the store answers.
    fn abandon(&self) {
        if let Engine::Thread(thread) = &self.engine {
            drop(thread.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (reply, _answer) = oneshot::channel();
        let stop = Message::Stop { until: Some(Instant::now()), reply };
        if self.parts.keeper.send(stop).is_ok() {
            if let Engine::Manual(shared) = &self.engine {
                shared.settle();
            }
            self.join();
        }
    }
}
