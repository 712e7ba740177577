//! The timer of this workspace, on either wheel. Tasks run on its worker.

use super::{Job, Peer};
use std::marker::PhantomData;
use std::time::Duration;
use timer_core::{Timeout, Timer, WheelKind};

pub(super) type Hierarchical = Ours<OfLevels>;
pub(super) type Hashed = Ours<OfRounds>;

/// Which wheel, as a type.
pub(super) trait Wheel: Clone + Send + 'static {
    const NAME: &'static str;
    fn kind(tick: Duration) -> WheelKind;
}

#[derive(Clone)]
pub(super) struct OfLevels;

impl Wheel for OfLevels {
    const NAME: &'static str = "timer";

    fn kind(_: Duration) -> WheelKind {
        WheelKind::Hierarchical
    }
}

/// One round as long as the timeouts that such a wheel is chosen for.
#[derive(Clone)]
pub(super) struct OfRounds;

impl Wheel for OfRounds {
    const NAME: &'static str = "timer-hashed";

    fn kind(tick: Duration) -> WheelKind {
        const ROUND: Duration = Duration::from_secs(30);
        let ticks = ROUND.as_nanos() / tick.as_nanos().max(1);
        WheelKind::Hashed { ticks_per_wheel: (ticks as usize).clamp(512, 1 << 20) }
    }
}

#[derive(Clone)]
pub(super) struct Ours<W> {
    timer: Timer,
    wheel: PhantomData<W>,
}

/// A copy of a job is all that a timeout captures.
pub(super) struct Captured<J>(J);

impl<W: Wheel> Peer for Ours<W> {
    const NAME: &'static str = W::NAME;
    const HAS_TICK: bool = true;
    type Handle = Timeout;
    type Work<J: Job> = Captured<J>;

    fn build(tick: Duration) -> Self {
        match Timer::builder().tick_duration(tick).wheel(W::kind(tick)).build() {
            Ok(timer) => Self { timer, wheel: PhantomData },
            Err(error) => panic!("{error}"),
        }
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        Captured(job)
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Timeout {
        let job = work.0;
        match self.timer.new_timeout(delay, move |_| job.run()) {
            Ok(timeout) => timeout,
            Err(rejected) => panic!("{rejected}"),
        }
    }

    #[inline]
    fn cancel(&mut self, timeout: Timeout) {
        timeout.cancel();
    }

    #[inline]
    fn reset(&mut self, timeout: &mut Timeout, delay: Duration) {
        timeout.reset(delay);
    }

    fn pending(&self) -> Option<usize> {
        Some(self.timer.pending_timeouts())
    }

    fn stop(self) {
        if let Err(error) = self.timer.stop() {
            panic!("{error}");
        }
    }
}
