//! The floor, that is, no timer at all but the least work of any timer. Scheduling reads the clock,
//! allocates 48 bytes and takes a lock. Cancelling takes a lock and frees the bytes. A reset reads
//! the clock and does one atomic addition. No lock is contended.
//!
//! Other timers are compared with the floor in the same process, alternating in turns. In a storm
//! the floor shows the effect of the scheduler alone on a call. It never runs a task.

use super::storming::{Expiring, Storming};
use super::{FLOOR, Job, Peer};
use parking_lot::Mutex;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// A lock per thread, which each call has to look up.
    static LOCK: Mutex<u64> = const { Mutex::new(0) };
}

/// The count of one thread. Only the end is shared.
#[derive(Default)]
pub(crate) struct Floor {
    resets: AtomicU64,
    stopped: Arc<AtomicBool>,
}

impl Clone for Floor {
    fn clone(&self) -> Self {
        Self { stopped: self.stopped.clone(), ..Self::default() }
    }
}

#[inline]
fn lock_and_unlock() {
    LOCK.with(|lock| *lock.lock() += 1);
}

impl Peer for Floor {
    const NAME: &'static str = FLOOR;
    type Handle = Box<[u64; 6]>;
    type Work<J: Job> = ();

    fn build(_: Duration) -> Self {
        Self::default()
    }

    fn work<J: Job>(_: J) {}

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, (): &()) -> Self::Handle {
        black_box(Instant::now() + delay);
        lock_and_unlock();
        // Zeros would be allocated by `calloc`, which leaves the fast path of glibc.
        black_box(Box::new([1; 6]))
    }

    #[inline]
    fn cancel(&mut self, handle: Self::Handle) {
        lock_and_unlock();
        drop(black_box(handle));
    }

    #[inline]
    fn reset(&mut self, _: &mut Self::Handle, delay: Duration) {
        black_box(Instant::now() + delay);
        // ORDERING: Relaxed, because the count is never read.
        self.resets.fetch_add(1, Ordering::Relaxed);
    }

    fn pending(&self) -> Option<usize> {
        None
    }
}

impl Storming for Floor {
    const FIRES: bool = false;
    type Back = ();

    #[inline]
    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &()) -> Option<Self::Handle> {
        // ORDERING: Relaxed, because the flag guards no other data.
        let stopped = self.stopped.load(Ordering::Relaxed);
        (!stopped).then(|| self.schedule::<J>(delay, work))
    }

    #[inline]
    fn try_cancel(&mut self, handle: Self::Handle) -> Option<bool> {
        self.cancel(handle);
        None
    }

    fn stop_beside_callers(&self) {
        // ORDERING: Relaxed, because the flag guards no other data.
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn run_back((): ()) {}
}

impl Expiring for Floor {}
