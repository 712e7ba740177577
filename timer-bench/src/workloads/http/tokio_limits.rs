//! The limits of timer-adapters, compiled from the same source with tokio's sleep, so that the two
//! timers differ in nothing else.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "the server uses a part of the source")]

#[path = "../../../../timer-adapters/src/hyper/limits.rs"]
mod limits;
#[path = "../../../../timer-adapters/src/hyper/parts.rs"]
mod parts;

use limits::ConnectionLimits;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time;

/// Returns limits on tokio's timer.
pub(super) fn limits<B>() -> ConnectionLimits<B> {
    ConnectionLimits::new(Timer)
}

/// The timer of the runtime.
#[derive(Clone)]
pub(super) struct Timer;

impl Timer {
    fn sleep(&self, delay: Duration) -> Sleep {
        Sleep(Box::pin(time::sleep(delay)))
    }
}

/// A sleep of tokio that need not be pinned.
struct Sleep(Pin<Box<time::Sleep>>);

impl Sleep {
    fn deadline(&self) -> Instant {
        self.0.deadline().into_std()
    }

    fn reset_after(&mut self, delay: Duration) {
        self.0.as_mut().reset(time::Instant::now() + delay);
    }

    fn reset_at(&mut self, deadline: Instant) {
        self.0.as_mut().reset(deadline.into());
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}
