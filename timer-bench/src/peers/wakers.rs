//! For timers that are futures: a waker that does the job, and the one poll that arms the timer with it.

use super::Job;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

struct Waking<J>(J);

impl<J: Job> Wake for Waking<J> {
    fn wake(self: Arc<Self>) {
        self.0.run();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.run();
    }
}

/// A waker that does `job`. One allocation; clones are the same.
pub(super) fn waker<J: Job>(job: J) -> Waker {
    Waker::from(Arc::new(Waking(job)))
}

/// Polls `future` for the first time. If it is due already, the job is done here.
#[inline]
pub(super) fn arm<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) {
    if future.poll(&mut Context::from_waker(waker)).is_ready() {
        waker.wake_by_ref();
    }
}
