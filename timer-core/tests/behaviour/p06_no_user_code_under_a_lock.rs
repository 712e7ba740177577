//! Promise 6. No user code (a task, `cancelled`, the `Drop` of a capture, a subscriber, an executor
//! or a waker) runs under a lock of the timer or while the wheel is borrowed. It may call any
//! method of the timer.
//!
//! A timer on virtual time has one shard. If one thread uses it alone, that thread meets a taken
//! lock only if it holds the lock itself. Therefore `inbox_handovers` stays 0 exactly if no user
//! code ran under the lock.
//!
//! The module guards against tokio-rs/tokio#8550, in which the `Drop` of a capture called back
//! under the lock.

use crate::support::panics::panic_on_purpose;
use crate::support::*;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{Timeout, Timer, TimerTask, WeakTimer};
use timer_executor::Task;

/// A caller that calls every method of the timer and counts its calls.
#[derive(Clone)]
struct Caller {
    timer: WeakTimer,
    calls: Arc<AtomicU32>,
    /// Whether no other thread uses the timer and time stands still, so that every answer is known.
    alone: bool,
}

impl Caller {
    fn new(timer: &Timer) -> Self {
        Self { timer: timer.downgrade(), calls: Arc::default(), alone: false }
    }

    fn alone(timer: &Timer) -> Self {
        Self { alone: true, ..Self::new(timer) }
    }

    fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        let Some(timer) = self.timer.upgrade() else { return };
        for delay in [Duration::ZERO, MILLI, HOUR, Duration::MAX] {
            let Ok(timeout) = timer.new_timeout(delay, |_| {}) else { continue };
            let moved = [2 * HOUR, MILLI, Duration::ZERO].map(|delay| timeout.reset(delay));
            let cancelled = [timeout.cancel(), timeout.cancel()];
            let state = [timeout.is_cancelled(), timeout.is_expired()];
            if self.alone {
                assert_eq!((moved, cancelled, state), ([true; 3], [true, false], [true, false]));
            }
        }
        if let Ok(rate) = timer.schedule_at_fixed_rate(HOUR, HOUR, |_| {}) {
            rate.cancel();
        }
        let _ = (timer.start(), timer.pending_timeouts(), timer.name().len(), format!("{timer:?} {:?}", timer.stats()));
        let _ = timer.stop();
    }

    fn calls(&self) -> u32 {
        self.calls.swap(0, SeqCst)
    }
}

/// A task that calls the timer in every hook.
struct Hooks(Caller);

impl TimerTask for Hooks {
    fn run(self, me: &Timeout) {
        assert!(!me.cancel() && !me.reset(HOUR));
        self.0.call();
    }

    fn cancelled(self, me: &Timeout) {
        assert!(!me.cancel() && !me.reset(HOUR));
        self.0.call();
    }
}

/// Calls the timer when it is dropped.
impl Drop for Hooks {
    fn drop(&mut self) {
        self.0.call();
    }
}

#[test]
fn tasks_hooks_and_drops_may_call_anything() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let caller = Caller::alone(&timer);
        let hooks = || Hooks(caller.clone());
        let quiet = |what: &str, calls: u32| {
            assert_eq!(caller.calls(), calls, "{what}");
            assert_eq!(timer.stats().inbox_handovers, 0, "{what} ran under the lock, {wheel:?}");
        };

        accepted(timer.new_timeout_task(HOUR, hooks())).cancel();
        quiet("`cancelled` and `Drop` in cancel", 2);
        let capture = hooks();
        accepted(timer.new_timeout(HOUR, move |_| drop(capture))).cancel();
        quiet("the drop of a capture in cancel", 1);
        let capture = hooks();
        accepted(timer.schedule_at_fixed_rate(HOUR, HOUR, move |_| capture.0.call())).cancel();
        quiet("the drop of a periodic capture in cancel", 1);

        accepted(timer.new_timeout_task(SECOND, hooks()));
        let capture = hooks();
        accepted(timer.new_timeout(SECOND, move |_| drop(capture)));
        let capture = hooks();
        let panics = move |_: &Timeout| {
            let _dropped_while_unwinding = &capture;
            panic_on_purpose()
        };
        accepted(timer.new_timeout(SECOND, panics));
        assert_eq!(driver.advance(SECOND), 3);
        quiet("a task, and the drops after it", 2 + 1 + 1);

        let capture = hooks();
        let mut runs = 0;
        let ends_itself = move |me: &Timeout| {
            capture.0.call();
            runs += 1;
            if runs == 2 {
                assert!(me.reset(SECOND) && me.cancel());
            }
        };
        accepted(timer.schedule_with_fixed_delay(SECOND, SECOND, ends_itself));
        assert_eq!(driver.advance(10 * SECOND), 2);
        quiet("a periodic task that cancels itself", 2 + 1);

        let [run, dropped] = [(); 2].map(|()| accepted(timer.new_timeout_task(HOUR, hooks())));
        let mut left = driver.stop().into_iter();
        left.next().unwrap().run();
        quiet("a task that was handed back", 2);
        drop(left);
        quiet("the drop of a task that was handed back", 2);
        assert!(run.is_cancelled() && dropped.is_cancelled());
        let rejected = timer.new_timeout_task(SECOND, hooks()).err().unwrap();
        drop(rejected);
        quiet("the drop of a rejected task", 1);
    }
}

#[test]
fn drops_with_the_driver_may_call_the_timer() {
    for wheel in WHEELS {
        let (timer, driver) = manual(wheel);
        let caller = Caller::alone(&timer);
        for _ in 0..3 {
            accepted(timer.new_timeout_task(HOUR, Hooks(caller.clone())));
        }
        drop(driver);
        assert_eq!((caller.calls(), timer.stats().inbox_handovers), (6, 0));
    }
}

#[test]
fn an_executor_and_a_subscriber_may_call_the_timer() {
    let seat: Arc<Mutex<Option<Caller>>> = Arc::default();
    let executor = {
        let seat = seat.clone();
        move |task: Task| {
            let caller = seat.lock().unwrap().clone();
            caller.unwrap().call();
            task.run();
        }
    };
    let (timer, mut driver) = Timer::builder().name("calls-all").executor(executor).build_manual().unwrap();
    let caller = Caller::alone(&timer);
    *seat.lock().unwrap() = Some(caller.clone());
    let subscriber = Caller::alone(&timer);
    let listener = subscriber.clone();
    log::listen("calls-all", move |_| listener.call());
    for _ in 0..4 {
        accepted(timer.new_timeout(SECOND, |_| panic_on_purpose()));
    }
    assert_eq!(driver.advance(SECOND), 4);
    assert_eq!((caller.calls(), subscriber.calls()), (4, 4));
    assert_eq!(timer.stats().inbox_handovers, 0);
    log::forget("calls-all");
}

#[test]
fn a_waker_may_call_the_timer() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let caller = Caller::new(&timer);
    let waker = caller.clone();
    driver.on_wake(move || waker.call());
    driver.turn();
    accepted(timer.new_timeout(SECOND, |_| {}));
    assert_eq!((caller.calls(), timer.stats().inbox_handovers), (1, 0));
}

/// Runs `body` on a new thread, so that the test fails if it deadlocks.
fn returns(body: impl FnOnce() + Send + 'static) {
    let (done, returned) = channel();
    let thread = std::thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    next(&returned);
    thread.join().unwrap();
}

#[test]
fn a_capture_dropped_by_cancel_may_stop_the_timer() {
    returns(|| {
        let timer = Timer::new();
        let caller = Caller::new(&timer);
        let timeouts = [(); 3].map(|()| accepted(timer.new_timeout_task(HOUR, Hooks(caller.clone()))));
        // Its hook stops the timer, which drops the tasks handed back, and their hooks call again.
        assert!(timeouts[0].cancel());
        assert_eq!(caller.calls(), 6);
        assert!(timeouts.iter().all(Timeout::is_cancelled));
        assert_eq!(timer.pending_timeouts(), 0);
    });
}

#[test]
fn captures_dropped_with_the_last_handle_may_call() {
    returns(|| {
        let timer = Timer::new();
        let caller = Caller::new(&timer);
        let timeouts = [(); 3].map(|()| accepted(timer.new_timeout_task(HOUR, Hooks(caller.clone()))));
        drop(timer);
        assert_eq!(caller.calls(), 6);
        assert!(timeouts.iter().all(|timeout| timeout.is_cancelled() && !timeout.cancel() && !timeout.reset(SECOND)));
    });
}

#[test]
fn a_subscriber_on_the_worker_may_always_call() {
    returns(|| {
        for round in 0..20 {
            let name = format!("first-word-{round}");
            // A turn longer than a tick would cause another event, whose call the timer rejects.
            let timer = Timer::builder().name(&name).tick_duration(HOUR).build().unwrap();
            let caller = Caller::new(&timer);
            let subscriber = caller.clone();
            log::listen(&name, move |_| subscriber.call());
            let (ran, received) = channel();
            accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
            next(&received);
            assert_eq!(timer.new_timeout(HOUR, |_| {}).map(drop).map_err(|error| error.reason), Ok(()), "not stopped");
            assert_eq!(timer.stop().unwrap().len(), 1);
            assert!(caller.calls() >= 2);
            log::forget(&name);
        }
    });
}
