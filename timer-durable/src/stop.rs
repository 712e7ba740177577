//! Stopping a timer, and dropping its last handle.

use crate::call::Call;
use crate::engine::{is_in_handler, is_keeper};
use crate::error::Error;
use crate::message::Message;
use crate::shutdown::DurableStopReport;
use crate::timer::{DurableTimer, Inner};
use std::sync::PoisonError;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time beyond its limit for which a stop waits for the keeper. The keeper ends within it
/// unless the store hangs.
const GRACE: Duration = Duration::from_millis(250);

impl DurableTimer {
    /// Stops the timer: begins nothing, waits for the running handlers up to `limit`, writes their
    /// ends, and hands the store back. Pending timeouts stay in the store. Calls in the queue get
    /// [`Error::Stopped`]. If the timer is stopped several times, the earliest of the limits counts
    /// for all of them. A call after the end returns the report of the first one.
    ///
    /// The answer comes at most a quarter of a second after the limit, also if the store hangs. A
    /// thread waits for the handlers until then, also if the [`Call`] is dropped. If the system
    /// refuses that thread, this thread waits. On virtual time the answer is there at once, because
    /// only the driver runs handlers.
    ///
    /// A handler must not wait for a stop without a limit that another thread has called, because
    /// the stop waits for the handler.
    ///
    /// # Errors
    ///
    /// [`Error::InHandler`] in a handler of this timer, and [`Error::OnKeeper`] on the keeper's own
    /// thread. Nothing was stopped. A handler can drop its handle, or let another thread call this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{DurableTimer, MemoryStore};
    ///
    /// let timer = DurableTimer::builder().open(MemoryStore::new()).wait()?;
    /// let report = timer.stop(Duration::from_secs(10)).wait()?;
    /// assert_eq!(report.unfinished, 0);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn stop(&self, limit: Duration) -> Call<DurableStopReport> {
        let client = &self.inner.client;
        if is_keeper() {
            return Call::ready(Err(Error::OnKeeper));
        }
        if is_in_handler(&client.keeper) {
            return Call::ready(Err(Error::InHandler));
        }
        if client.manual.is_some() {
            // Nobody else takes turns, so nothing can end after this one.
            client.settle();
            return Call::ready(Ok(self.inner.end(Some(Instant::now()))));
        }
        let until = Instant::now().checked_add(limit);
        client.shutdown.request();
        let (reply, answer) = oneshot::channel();
        let inner = self.inner.clone();
        let end = move || {
            let report = inner.end(until);
            // The caller may drop the last handle next, and the timer ends with it.
            drop(inner);
            let _dropped = reply.send(Ok(report));
        };
        match Builder::new().name(format!("{}-stop", client.name)).spawn(end) {
            Ok(_detached) => Call::sent(answer, |report| report),
            Err(_refused) => Call::ready(Ok(self.inner.end(until))),
        }
    }
}

impl Inner {
    /// Ends the keeper, and waits for it until a quarter of a second after `until`.
    fn end(&self, until: Option<Instant>) -> DurableStopReport {
        let client = &self.client;
        client.shutdown.request();
        client.reader.close(GRACE);
        let (reply, answer) = oneshot::channel();
        let report = if client.send(Message::Stop { until, reply }).is_err() {
            self.report()
        } else {
            let answer = match until.and_then(|until| until.checked_add(GRACE)) {
                Some(until) => answer.recv_deadline(until),
                None => answer.recv().map_err(|_| oneshot::RecvTimeoutError::Disconnected),
            };
            match answer {
                Ok(report) => {
                    self.join();
                    report
                }
                // The keeper has ended before it saw the message.
                Err(oneshot::RecvTimeoutError::Disconnected) => self.report(),
                Err(oneshot::RecvTimeoutError::Timeout) => self.give_up(),
            }
        };
        client.figures.lock().is_stopped = true;
        report
    }

    /// Returns the report of a keeper that has ended.
    fn report(&self) -> DurableStopReport {
        // A keeper that `ManualDurableDriver::crash` has dropped has left no report.
        self.client.shutdown.report.get().copied().unwrap_or(DurableStopReport { unfinished: 0, released: true })
    }

    /// Leaves the keeper's thread to itself. It ends when the store answers.
    fn give_up(&self) -> DurableStopReport {
        self.client.shutdown.give_up();
        drop(self.take_thread());
        let unfinished = usize::try_from(self.client.figures.read().running).unwrap_or(usize::MAX);
        DurableStopReport { unfinished, released: false }
    }

    /// Waits for the keeper's thread, unless this is the thread.
    fn join(&self) {
        if let Some(thread) = self.take_thread().filter(|_| !is_keeper()) {
            let _ended = thread.join();
        }
    }

    fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (reply, _answer) = oneshot::channel();
        self.client.shutdown.request();
        self.client.reader.close(GRACE);
        if self.client.send(Message::Stop { until: Some(Instant::now()), reply }).is_ok() {
            self.join();
        }
    }
}
