//! The timer of this workspace as tasks use it, through its futures.

use super::tasks;
use std::pin::Pin;
use std::time::Duration;
use timer_core::{Sleep, Timer};

#[derive(Clone)]
pub(super) struct Tasks {
    timer: Timer,
}

impl tasks::Tasks for Tasks {
    const NAME: &'static str = super::OURS;
    type Sleep = Sleep;

    fn build() -> Self {
        Self { timer: Timer::new() }
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        self.timer.sleep(delay)
    }

    fn reset(mut sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.reset_after(delay);
    }

    async fn is_in_time<F: Future + Send>(&self, limit: Duration, future: F) -> bool {
        self.timer.timeout(limit, future).await.is_ok()
    }
}
