//! futures-timer's `Delay`. One thread with a heap serves the whole process. It takes part in
//! workloads of tasks only.

use super::tasks::Tasks;
use futures_timer::Delay;
use std::pin::Pin;
use std::time::Duration;

#[derive(Clone)]
pub(super) struct FuturesTimer;

impl Tasks for FuturesTimer {
    const NAME: &'static str = "futures-timer";
    type Sleep = Delay;

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> Delay {
        Delay::new(delay)
    }

    fn reset(mut sleep: Pin<&mut Delay>, delay: Duration) {
        sleep.reset(delay);
    }
}
