//! The timer of this workspace as tasks use it, through its futures.

use super::tasks;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use timer_core::Timer;

#[derive(Clone)]
pub(super) struct Tasks {
    timer: Timer,
}

/// A sleep of the library. Its errors cannot occur, because the timer has no bound and is not
/// stopped.
pub(super) struct Sleep(timer_core::Sleep);

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(|slept| match slept {
            Ok(()) => (),
            Err(reason) => panic!("{reason}"),
        })
    }
}

impl tasks::Tasks for Tasks {
    const NAME: &'static str = super::OURS;
    type Sleep = Sleep;

    fn build() -> Self {
        Self { timer: Timer::new() }
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        Sleep(self.timer.sleep(delay))
    }

    fn reset(mut sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.0.reset(delay);
    }

    async fn is_in_time<F: Future + Send>(&self, limit: Duration, future: F) -> bool {
        self.timer.timeout(limit, future).await.is_ok()
    }
}
