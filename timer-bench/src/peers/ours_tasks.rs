//! Ours as tasks use it.
//!
//! **The place to plug in the library's own futures**: `Sleep` becomes `timer_core::Sleep` (mapped to `()`), `sleep` here
//! calls `Timer::sleep`, `reset` calls `Sleep::reset`, and `is_in_time` is `Timer::timeout(limit, future)`. Until then
//! a sleep is made here of a timeout that wakes, which is what a program without them writes for itself.

use super::tasks;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer};

#[derive(Clone)]
pub(super) struct Tasks {
    timer: Timer,
}

/// Registered at the first poll; cancelled when it is dropped.
pub(super) struct Sleep {
    timer: Timer,
    deadline: Instant,
    registered: Option<(Timeout, Arc<Mutex<State>>)>,
}

#[derive(Default)]
enum State {
    #[default]
    Over,
    Waiting(Waker),
}

impl Sleep {
    fn register(&self, waker: Waker) -> (Timeout, Arc<Mutex<State>>) {
        let state = Arc::new(Mutex::new(State::Waiting(waker)));
        let shared = state.clone();
        let wake = move |_: &Timeout| {
            let state = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
            if let State::Waiting(waker) = state {
                waker.wake();
            }
        };
        match self.timer.new_timeout_at(self.deadline, wake) {
            Ok(timeout) => (timeout, state),
            Err(rejected) => panic!("{rejected}"),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some((_, state)) = &self.registered else {
            let registered = self.register(context.waker().clone());
            self.registered = Some(registered);
            return Poll::Pending;
        };
        match &mut *state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Over => Poll::Ready(()),
            State::Waiting(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((timeout, _)) = &self.registered {
            timeout.cancel();
        }
    }
}

impl tasks::Tasks for Tasks {
    const NAME: &'static str = super::OURS;
    type Sleep = Sleep;

    fn build() -> Self {
        Self { timer: Timer::new() }
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        Sleep { timer: self.timer.clone(), deadline: Instant::now() + delay, registered: None }
    }

    fn reset(mut sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.deadline = Instant::now() + delay;
        // One that is over begins anew at its next poll.
        if sleep.registered.as_ref().is_some_and(|(timeout, _)| !timeout.reset(delay)) {
            sleep.registered = None;
        }
    }
}
