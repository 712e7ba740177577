//! Wakers that count or call a function, and a small executor of futures.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use timer_core::{Timer, TimerStats};

/// A waker that counts its wake-ups.
#[derive(Default)]
pub(crate) struct Bell {
    rung: AtomicUsize,
}

impl Bell {
    pub(crate) fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell::default());
        (bell.clone(), Waker::from(bell))
    }

    pub(crate) fn rung(&self) -> usize {
        self.rung.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that calls a function when it wakes, and another one when it is dropped.
pub(crate) struct Hook {
    pub(crate) on_wake: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    pub(crate) on_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Hook {
    pub(crate) fn waker(on_wake: impl FnOnce() + Send + 'static) -> Waker {
        let hook = Hook { on_wake: Mutex::new(Some(Box::new(on_wake))), on_drop: Mutex::new(None) };
        Waker::from(Arc::new(hook))
    }

    pub(crate) fn at_drop(on_drop: impl FnOnce() + Send + 'static) -> Waker {
        let hook = Hook { on_wake: Mutex::new(None), on_drop: Mutex::new(Some(Box::new(on_drop))) };
        Waker::from(Arc::new(hook))
    }
}

impl Wake for Hook {
    fn wake(self: Arc<Self>) {
        let hook = self.on_wake.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        if let Some(hook) = self.on_drop.get_mut().unwrap().take() {
            hook();
        }
    }
}

/// Polls a future that needs no pin.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(waker))
}

/// Returns the scheduled, pending, expired and cancelled timeouts.
pub(crate) fn accounts(timer: &Timer) -> (u64, u64, u64, u64) {
    let TimerStats { scheduled, pending, expired, cancelled, .. } = timer.stats();
    (scheduled, pending, expired, cancelled)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future by parking the thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Polls a future once, with the waker of the calling task.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(pin!(&mut *future).poll(cx))).await
}
