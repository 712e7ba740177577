//! Stopping a timer, and dropping its last handle.

use crate::engine::{is_in_handler, is_keeper};
use crate::error::Error;
use crate::message::Message;
use crate::shutdown::DurableStopReport;
use crate::timer::{DurableTimer, Host, Inner};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The time beyond its limit for which a stop waits for the keeper. The keeper ends within it
/// unless the store hangs.
const GRACE: Duration = Duration::from_millis(250);

impl DurableTimer {
    /// Stops the timer: begins nothing, waits for the running handlers up to `limit`, writes their
    /// ends, and hands the store back. Pending timeouts stay in the store. Calls in the queue get
    /// [`Error::Stopped`]. If several threads stop the timer, the earliest of their limits counts
    /// for all of them. A call after the end returns the report of the first one.
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
    pub fn stop(&self, limit: Duration) -> Result<DurableStopReport, Error> {
        let report = self.end(limit)?;
        self.inner.parts.figures.lock().is_stopped = true;
        Ok(report)
    }

    fn end(&self, limit: Duration) -> Result<DurableStopReport, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let keeper = &self.inner.parts.keeper;
        if is_in_handler(keeper) {
            return Err(Error::InHandler);
        }
        let (reply, answer) = oneshot::channel();
        let until = match &self.inner.host {
            Host::Thread(_) => Instant::now().checked_add(limit),
            Host::Manual(keeper) => {
                // Nobody else takes turns, so nothing can end after this one.
                keeper.settle();
                Some(Instant::now())
            }
        };
        self.inner.parts.shutdown.request();
        self.inner.parts.reader.close(GRACE);
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
                self.inner.parts.shutdown.give_up();
                self.inner.abandon();
                let unfinished = usize::try_from(self.stats().running).unwrap_or(usize::MAX);
                Ok(DurableStopReport { unfinished, released: false })
            }
        }
    }
}

impl Inner {
    /// Returns the report of a keeper that has ended.
    fn report(&self) -> DurableStopReport {
        // A keeper that `ManualDurableDriver::crash` has dropped has left no report.
        self.parts.shutdown.report.get().copied().unwrap_or(DurableStopReport { unfinished: 0, released: true })
    }

    /// Waits for the keeper's thread, unless this is the thread.
    fn join(&self) {
        if let Host::Thread(thread) = &self.host {
            let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread.filter(|_| !is_keeper()) {
                let _ended = thread.join();
            }
        }
    }

    /// Leaves the keeper's thread to itself. It ends when the store answers.
    fn abandon(&self) {
        if let Host::Thread(thread) = &self.host {
            drop(thread.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (reply, _answer) = oneshot::channel();
        let stop = Message::Stop { until: Some(Instant::now()), reply };
        self.parts.shutdown.request();
        self.parts.reader.close(GRACE);
        if self.parts.keeper.send(stop).is_ok() {
            if let Host::Manual(keeper) = &self.host {
                keeper.settle();
            }
            self.join();
        }
    }
}
