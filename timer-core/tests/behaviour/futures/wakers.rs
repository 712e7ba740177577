//! Wakers with arbitrary code. Each runs with no lock held and harms only its own future.

use crate::support::wakers::*;
use crate::support::*;
use std::panic::panic_any;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;
use timer_core::{Sleep, Timer};

type Shared = Arc<Mutex<Option<Sleep>>>;

fn shared(sleep: Sleep) -> Shared {
    Arc::new(Mutex::new(Some(sleep)))
}

fn poll_shared(sleep: &Shared, waker: &Waker) -> bool {
    poll(sleep.lock().unwrap().as_mut().unwrap(), waker).is_ready()
}

#[test]
fn a_waker_may_drop_its_future() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let sleep = shared(timer.sleep(SECOND));
    let inside = sleep.clone();
    assert!(!poll_shared(&sleep, &Hook::waker(move || drop(inside.lock().unwrap().take()))));
    driver.advance(SECOND);
    assert!(sleep.lock().unwrap().is_none());
    assert_eq!(Arc::strong_count(&sleep), 1);
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}

#[test]
fn a_waker_may_poll_and_reset_inline() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let sleep = shared(timer.sleep(SECOND));
    let (bell, waker) = Bell::new();
    let inside = sleep.clone();
    let again = waker.clone();
    let inline = Hook::waker(move || {
        assert!(poll_shared(&inside, &again));
        inside.lock().unwrap().as_mut().unwrap().reset_after(SECOND);
        assert!(!poll_shared(&inside, &again), "the sleep waits again before its wake returns");
    });
    assert!(!poll_shared(&sleep, &inline));
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(bell.rung(), 0);
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(bell.rung(), 1);
    assert_eq!(timer.stats().task_panics, 0);
    assert_eq!(accounts(&timer), (2, 0, 2, 0));
}

#[test]
fn a_waker_may_use_the_timer() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut sleep = timer.sleep(SECOND);
    let inside = timer.clone();
    let waker = Hook::waker(move || {
        inside.new_timeout(SECOND, |_| {}).unwrap();
        assert_eq!(inside.stop_and_wait(SECOND).unwrap_err(), timer_core::StopError::Driven);
        assert_eq!(inside.pending_timeouts(), 1);
    });
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(driver.advance(2 * SECOND), 2);
    assert_eq!(timer.stats().task_panics, 0);
}

#[test]
fn a_panicking_wake_is_caught_and_counted() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..3).map(|_| timer.sleep(SECOND)).collect();
    assert!(poll(&mut sleeps[0], &waker).is_pending());
    assert!(poll(&mut sleeps[1], &Hook::waker(|| panic_any("a bad waker"))).is_pending());
    assert!(poll(&mut sleeps[2], &waker).is_pending());
    assert_eq!(driver.advance(SECOND), 3);
    assert_eq!((bell.rung(), timer.stats().task_panics), (2, 1));
    assert!(sleeps.iter_mut().all(|sleep| poll(sleep, &waker).is_ready()));
}

#[test]
fn a_panicking_wake_does_not_end_stop() {
    let timer = Timer::new();
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..3).map(|_| timer.sleep(HOUR)).collect();
    assert!(poll(&mut sleeps[0], &waker).is_pending());
    assert!(poll(&mut sleeps[1], &Hook::waker(|| panic_any("a bad waker"))).is_pending());
    assert!(poll(&mut sleeps[2], &waker).is_pending());
    assert!(timer.stop().unwrap().is_empty());
    assert_eq!((bell.rung(), timer.stats().task_panics), (2, 1));
    assert_eq!(accounts(&timer), (3, 0, 0, 3));
}

#[test]
fn a_panic_of_a_dropped_waker_is_counted() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut changed = timer.sleep(SECOND);
    assert!(poll(&mut changed, &Hook::at_drop(|| panic_any("a bad drop"))).is_pending());
    assert!(poll(&mut changed, Waker::noop()).is_pending());
    assert_eq!(timer.stats().task_panics, 1, "dropped by another waker");
    let mut dropped = timer.sleep(SECOND);
    assert!(poll(&mut dropped, &Hook::at_drop(|| panic_any("a bad drop"))).is_pending());
    drop(dropped);
    assert_eq!(timer.stats().task_panics, 2, "dropped with its future");
    let mut woken = timer.sleep(SECOND);
    assert!(poll(&mut woken, &Hook::at_drop(|| panic_any("a bad drop"))).is_pending());
    driver.advance(SECOND);
    assert_eq!(timer.stats().task_panics, 3, "dropped after its wake");
    assert_eq!(accounts(&timer), (3, 0, 2, 1));
}

#[test]
fn a_dropped_waker_may_poll_another_future() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let other = shared(timer.sleep(SECOND));
    let inside = other.clone();
    let waker = Hook::at_drop(move || assert!(!poll_shared(&inside, Waker::noop())));
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    drop(sleep);
    assert_eq!(timer.stats().task_panics, 0);
    assert_eq!(driver.advance(SECOND), 1);
}

#[test]
fn a_waker_may_drop_many_sleeps() {
    let timer = Timer::new();
    let (sender, woken) = std::sync::mpsc::channel();
    let sleeps: Arc<Mutex<Vec<Sleep>>> = Arc::default();
    for nth in 0..100 {
        let inside = sleeps.clone();
        let sender = sender.clone();
        let waker = Hook::waker(move || {
            // The same batch is just waking some of these sleeps.
            let all = std::mem::take(&mut *inside.lock().unwrap());
            sender.send(all.len()).unwrap();
            drop(all);
        });
        let mut sleep = timer.sleep(Duration::from_millis(20) + nth * MICRO);
        // A thread that is held up finds some of the last ones due.
        if poll(&mut sleep, &waker).is_pending() {
            sleeps.lock().unwrap().push(sleep);
        }
    }
    drop(sender);
    next(&woken);
    all_gone(&woken);
    let (scheduled, pending, expired, cancelled) = accounts(&timer);
    assert_eq!((pending, expired + cancelled), (0, scheduled));
}

/// A waker whose pointer is the same for all tasks while they are polled. A clone has a pointer of
/// its own task.
#[expect(unsafe_code, reason = "a waker without an `Arc` cannot be made otherwise")]
mod lent {
    use std::ptr::without_provenance;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::{RawWaker, RawWakerVTable, Waker};

    const LENT: usize = 8;
    static POLLED: AtomicUsize = AtomicUsize::new(0);
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    static WOKEN_AGAIN: AtomicUsize = AtomicUsize::new(0);
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| {});
    static UNCLONABLE: RawWakerVTable = RawWakerVTable::new(|_| panic!("a bad waker"), wake_again, wake_again, |_| {});

    fn clone(data: *const ()) -> RawWaker {
        let task = if data.addr() == LENT { POLLED.load(SeqCst) } else { data.addr() };
        RawWaker::new(without_provenance(task), &TABLE)
    }

    fn wake(data: *const ()) {
        WOKEN.store(data.addr(), SeqCst);
    }

    /// Returns the waker for one poll of `task`.
    pub(super) fn waker(task: usize) -> Waker {
        POLLED.store(task, SeqCst);
        // SAFETY: the data is a number, and nobody dereferences it.
        unsafe { Waker::new(without_provenance(LENT), &TABLE) }
    }

    fn wake_again(_: *const ()) {
        WOKEN_AGAIN.fetch_add(1, SeqCst);
    }

    /// Returns a waker that panics when it is cloned.
    pub(super) fn unclonable() -> Waker {
        // SAFETY: the data is a number, and nobody dereferences it.
        unsafe { Waker::new(without_provenance(LENT), &UNCLONABLE) }
    }

    /// Returns how often such wakers were woken.
    pub(super) fn woken_again() -> usize {
        WOKEN_AGAIN.load(SeqCst)
    }

    /// Returns the task that was woken last.
    pub(super) fn woken_task() -> usize {
        WOKEN.load(SeqCst)
    }
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let mut sleep = timer.sleep(MILLI);
    for task in [100, 200] {
        let waker = lent::waker(task);
        assert!(poll(&mut sleep, &waker).is_pending());
    }
    driver.advance(MILLI);
    assert_eq!(lent::woken_task(), 200);
}

#[test]
fn a_task_whose_waker_cannot_be_cloned_polls_again() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(SECOND);
    for (polls, waker) in [(1, &lent::unclonable()), (1, &waker), (2, &lent::unclonable())] {
        assert!(poll(&mut sleep, waker).is_pending());
        assert_eq!((lent::woken_again(), timer.stats().task_panics), (polls, polls as u64));
    }
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 1);
}
