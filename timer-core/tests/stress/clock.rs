//! The time that the timer of a storm lives in: the machine's, or one that a thread of the storm
//! moves by jumps.
//!
//! Virtual time may stand anywhere within the jump that goes on, so it is known as two bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Default)]
pub(crate) enum Clock {
    #[default]
    Real,
    Moved(Arc<Moved>),
}

/// Nanoseconds since `epoch`: where time has been, and how far the jump that goes on will take it.
pub(crate) struct Moved {
    epoch: Instant,
    reached: AtomicU64,
    target: AtomicU64,
}

impl Moved {
    pub(crate) fn since(epoch: Instant) -> Self {
        Self { epoch, reached: AtomicU64::new(0), target: AtomicU64::new(0) }
    }

    /// The thread that moves time does so from `now` by `by` in `jump`.
    pub(crate) fn jump(&self, now: Duration, by: Duration, jump: impl FnOnce()) {
        let (now, target) = (nanos(now), nanos(now + by));
        self.target.store(target, Ordering::Release);
        self.reached.store(now, Ordering::Release);
        jump();
        self.reached.store(target, Ordering::Release);
    }
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap()
}

impl Clock {
    /// The present or, if that moves just now, a time before it.
    pub(crate) fn at_least(&self) -> Instant {
        match self {
            Clock::Real => Instant::now(),
            Clock::Moved(time) => time.epoch + Duration::from_nanos(time.reached.load(Ordering::Acquire)),
        }
    }

    /// The present or, if that moves just now, a time after it.
    pub(crate) fn at_most(&self) -> Instant {
        match self {
            Clock::Real => Instant::now(),
            Clock::Moved(time) => time.epoch + Duration::from_nanos(time.target.load(Ordering::Acquire)),
        }
    }
}
