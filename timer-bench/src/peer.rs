//! The traits of the compared timers.
//!
//! Each peer is used in the cheapest way that its interface offers. Peers that run closures get a
//! closure that captures a copy of the job, mostly a pointer. Peers whose timers are
//! futures get neither a task nor a spawn. Each future is polled once with a waker that does the
//! work inline, so it costs less than in a program. All dispatch is static.

use std::time::Duration;

/// The tick of all workloads that do not set another one.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The name of ours, to which the others are compared.
pub(crate) const OURS: &str = "timer";

/// The name of ours in a static program.
pub(crate) const STATIC: &str = "timer-static";

/// The name of the floor, the least work of any timer.
pub(crate) const FLOOR: &str = "floor";

/// The work of a timer when it is due. The task captures a copy of the job.
pub(crate) trait Job: Copy + Send + Sync + 'static {
    /// Runs the job.
    fn run(self);
}

/// A timer. Clones are handles of the same timer for other threads.
pub(crate) trait Peer: Clone + Send + Sized + 'static {
    /// The name on the command line and in the tables.
    const NAME: &'static str;

    /// The reason why a pending timer cannot be moved, if it cannot.
    const NO_RESET: Option<&'static str> = None;

    /// Set if [`build`](Self::build) uses its tick.
    const HAS_TICK: bool = false;

    /// Set if dropping a handle cancels the timer.
    const DROP_CANCELS: bool = false;

    /// A pending timer.
    type Handle: Send;

    /// A job in the form that `schedule` takes. It may serve for many timers.
    type Work<J: Job>: Send;

    /// Builds a timer with this tick, if it has one.
    fn build(tick: Duration) -> Self;

    /// Runs `body` in the context that callers of this timer need.
    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// Converts a job into the form that `schedule` takes.
    fn work<J: Job>(job: J) -> Self::Work<J>;

    /// Schedules one run of `work` in `delay`.
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Self::Handle;

    /// Cancels a pending timer.
    fn cancel(&mut self, handle: Self::Handle);

    /// Moves a pending timer to `delay` from now. Not called if [`NO_RESET`](Self::NO_RESET) has a
    /// reason.
    fn reset(&mut self, handle: &mut Self::Handle, delay: Duration);

    /// Wakes the threads of the timer, so that they do the work that calls have left to them.
    fn wake(&self) {}

    /// Returns the number of timers it holds, or `None` if the peer does not report it.
    fn pending(&self) -> Option<usize> {
        None
    }

    /// Stops the timer and its threads and frees its memory.
    fn stop(self) {}

    /// Schedules `count` timers on virtual time and, if `run` is set, runs them on this thread.
    /// Returns `false` if the peer has no virtual time.
    fn expire<J: Job>(_count: usize, _work: &Self::Work<J>, _run: bool) -> bool {
        false
    }
}

/// A timer whose sleeps are futures in tasks.
#[cfg(feature = "tokio")]
pub(crate) trait Sleeps: Clone + Send + Sync + 'static {
    /// A future that is ready when its time is over. Dropping it cancels.
    type Sleep: Future + Send + 'static;

    /// Builds the runtime on which the tasks run.
    ///
    /// # Errors
    ///
    /// Fails if the system starts no threads.
    fn runtime(workers: usize) -> std::io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_time().build()
    }

    /// Builds a timer, or returns the one of the process.
    fn build() -> Self;

    /// Returns a sleep of `delay`. Called and polled on the runtime.
    fn sleep(&self, delay: Duration) -> Self::Sleep;

    /// Moves the end of the sleep to `delay` from now.
    fn reset(sleep: std::pin::Pin<&mut Self::Sleep>, delay: Duration);

    /// Waits for `future` for at most `limit`, by the timer's own call if it has one.
    fn limit<F: Future + Send>(&self, limit: Duration, future: F) -> impl Future<Output = ()> + Send;
}

/// A delay queue that one task owns. It is created and used on a runtime.
#[cfg(feature = "tokio")]
pub(crate) trait Queue {
    /// The name of an item in the queue.
    type Key: Copy;

    /// Creates an empty queue.
    fn new() -> Self;

    /// Inserts `item`, to come out `delay` from now.
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key;

    /// Removes an item.
    fn remove(&mut self, key: Self::Key);

    /// Moves the deadline of an item to `delay` from now.
    fn reset(&mut self, key: Self::Key, delay: Duration);

    /// Polls for the next item that is due. Returns `None` if the queue is empty.
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<u64>>;

    /// Returns the next item that is due, without waiting if the queue can do so.
    #[inline]
    fn try_next(&mut self, context: &mut std::task::Context<'_>) -> Option<u64> {
        match self.poll(context) {
            std::task::Poll::Ready(item) => item,
            std::task::Poll::Pending => None,
        }
    }
}

/// A map that one task owns, whose entries expire. It is created and used on a runtime.
#[cfg(feature = "tokio")]
pub(crate) trait TtlMap {
    /// The reason why no task can wait for an expiration, if none can.
    const NO_POLL: Option<&'static str> = None;

    /// Set if a thread of the timer wakes the task that polls.
    const HAS_THREAD: bool = false;

    /// Creates an empty map.
    fn new() -> Self;

    /// Returns the value of an entry.
    fn get(&mut self, key: u64) -> Option<u64>;

    /// Writes an entry that expires `lifetime` from now.
    fn set(&mut self, key: u64, value: u64, lifetime: Duration);

    /// Changes the value of an entry and not its deadline. Returns `false` if there is none.
    fn change(&mut self, key: u64, by: impl FnOnce(&mut u64)) -> bool;

    /// Removes an entry.
    fn remove(&mut self, key: u64);

    /// Does the work that calls have left to do.
    fn maintain(&mut self) {}

    /// Returns the next deadline, if a task can wait for that by a sleep of its runtime.
    fn next_deadline(&self) -> Option<std::time::Instant> {
        None
    }

    /// Takes out an entry that has expired and returns its value. Does not wait if the map can do
    /// so.
    fn try_next(&mut self, context: &mut std::task::Context<'_>) -> Option<u64>;

    /// Polls for the value of the next entry that has expired. Returns `None` if the map is empty.
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<u64>>;
}
