//! The clock of a storm's timer, either the real one or one that a thread of the storm moves by
//! jumps.
//!
//! During a jump, virtual time may be anywhere within it. Therefore it is known by two bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Default)]
pub(crate) enum Clock {
    #[default]
    Real,
    VirtualTime(Arc<VirtualTime>),
}

/// Nanoseconds since `epoch` that time has reached, and that the current jump will reach.
pub(crate) struct VirtualTime {
    epoch: Instant,
    reached: AtomicU64,
    target: AtomicU64,
}

impl VirtualTime {
    pub(crate) fn since(epoch: Instant) -> Self {
        Self { epoch, reached: AtomicU64::new(0), target: AtomicU64::new(0) }
    }

    /// Moves time from `now` by `by` with the function `jump`. Only one thread moves time.
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
    /// Returns the present, or an earlier time if a jump is in progress.
    pub(crate) fn earliest(&self) -> Instant {
        match self {
            Clock::Real => Instant::now(),
            Clock::VirtualTime(time) => time.epoch + Duration::from_nanos(time.reached.load(Ordering::Acquire)),
        }
    }

    /// Returns the present, or a later time if a jump is in progress.
    pub(crate) fn latest(&self) -> Instant {
        match self {
            Clock::Real => Instant::now(),
            Clock::VirtualTime(time) => time.epoch + Duration::from_nanos(time.target.load(Ordering::Acquire)),
        }
    }
}
