//! The timer of this workspace on either wheel. Tasks run on its worker.

use crate::peer::{Job, OURS, Peer};
use std::marker::PhantomData;
use std::time::Duration;
use timer_core::{Timeout, Timer, WheelKind};

pub(crate) type Hierarchical = Ours<HierarchicalKind>;
pub(crate) type Hashed = Ours<HashedKind>;

/// The kind of a wheel as a type.
pub(crate) trait Wheel: Clone + Send + 'static {
    const NAME: &'static str;
    fn kind(tick: Duration) -> WheelKind;
}

#[derive(Clone)]
pub(crate) struct HierarchicalKind;

impl Wheel for HierarchicalKind {
    const NAME: &'static str = OURS;

    fn kind(_: Duration) -> WheelKind {
        WheelKind::Hierarchical
    }
}

/// The hashed wheel, with a round of about 30 s or, if that is more than 2^20 slots, a shorter one.
#[derive(Clone)]
pub(crate) struct HashedKind;

impl Wheel for HashedKind {
    const NAME: &'static str = "timer-hashed";

    fn kind(tick: Duration) -> WheelKind {
        const ROUND: Duration = Duration::from_secs(30);
        let ticks = ROUND.as_nanos() / tick.as_nanos().max(1);
        WheelKind::Hashed { ticks_per_wheel: (ticks as usize).clamp(512, 1 << 20) }
    }
}

#[derive(Clone)]
pub(crate) struct Ours<W> {
    timer: Timer,
    wheel: PhantomData<W>,
}

/// The closure of a timeout, which captures only a copy of the job.
pub(crate) struct CapturedJob<J>(J);

impl<W: Wheel> Peer for Ours<W> {
    const NAME: &'static str = W::NAME;
    const HAS_TICK: bool = true;
    type Handle = Timeout;
    type Work<J: Job> = CapturedJob<J>;

    fn build(tick: Duration) -> Self {
        match Timer::builder().tick_duration(tick).wheel(W::kind(tick)).build() {
            Ok(timer) => Self { timer, wheel: PhantomData },
            Err(error) => panic!("{error}"),
        }
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
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

    fn expire<J: Job>(count: usize, work: &Self::Work<J>, run: bool) -> bool {
        const STEP: Duration = Duration::from_millis(1);
        let (timer, mut driver) = match Timer::builder().wheel(W::kind(STEP)).build_manual() {
            Ok(built) => built,
            Err(error) => panic!("{error}"),
        };
        let job = work.0;
        // A busy server has a hundred timeouts per tick.
        for at in 0..count {
            let delay = STEP * (1 + at / 100) as u32;
            if let Err(rejected) = timer.new_timeout(delay, move |_| job.run()) {
                panic!("{rejected}");
            }
        }
        if run {
            let ran = driver.advance(STEP * (2 + count / 100) as u32);
            assert_eq!(ran, count, "all are due");
        }
        // The cost of dropping these does not belong to an operation.
        std::mem::forget((timer, driver));
        true
    }
}

/// The futures of the library.
#[cfg(feature = "tokio")]
#[derive(Clone)]
pub(crate) struct OurSleeps(Timer);

#[cfg(feature = "tokio")]
impl crate::peer::Sleeps for OurSleeps {
    type Sleep = timer_core::Sleep;

    fn build() -> Self {
        Self(Timer::new())
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        self.0.sleep(delay)
    }

    fn reset(sleep: std::pin::Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.get_mut().reset_after(delay);
    }

    async fn limit<F: Future + Send>(&self, limit: Duration, future: F) {
        _ = self.0.timeout(limit, future).await;
    }
}
