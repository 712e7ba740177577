//! hierarchical_hash_wheel_timer's timer with a thread, to which callers send messages. Callers
//! choose the identifiers.

use super::{Job, Peer};
use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{ClosureTimer, OneShotClosureState, PeriodicClosureState, Timer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type OneShot = OneShotClosureState<u64>;
type Periodic = PeriodicClosureState<u64>;

/// The number of handles. Each handle numbers its timers in a separate range.
static HANDLES: AtomicU64 = AtomicU64::new(0);

pub(super) struct Hhwt {
    timer: Arc<TimerWithThread<u64, OneShot, Periodic>>,
    sender: TimerRef<u64, OneShot, Periodic>,
    number: u64,
}

impl Hhwt {
    fn of(timer: Arc<TimerWithThread<u64, OneShot, Periodic>>) -> Self {
        // ORDERING: Relaxed, because the number only has to be unique.
        let number = HANDLES.fetch_add(1, Ordering::Relaxed) << 40;
        let sender = timer.timer_ref();
        Self { timer, sender, number }
    }
}

impl Clone for Hhwt {
    fn clone(&self) -> Self {
        Self::of(self.timer.clone())
    }
}

pub(super) struct CapturedJob<J>(J);

impl Peer for Hhwt {
    const NAME: &'static str = "hhwt";
    const NO_RESET: Option<&'static str> = Some("a timer cannot be moved");
    type Handle = u64;
    type Work<J: Job> = CapturedJob<J>;

    fn build(_: Duration) -> Self {
        match TimerWithThread::new() {
            Ok(timer) => Self::of(Arc::new(timer)),
            Err(error) => panic!("no thread: {error}"),
        }
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> u64 {
        self.number += 1;
        let job = work.0;
        self.sender.schedule_action_once(self.number, delay, move |_| job.run());
        self.number
    }

    fn cancel(&mut self, id: u64) {
        self.sender.cancel(&id);
    }

    fn reset(&mut self, _: &mut u64, _: Duration) {}

    fn pending(&self) -> Option<usize> {
        None
    }

    fn stop(self) {
        if let Err(error) = self.timer.shutdown_async() {
            panic!("{error:?}");
        }
    }
}
