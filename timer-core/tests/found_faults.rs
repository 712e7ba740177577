//! Faults that this timer once had, each as small as it can be shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::future::Future;
use std::mem::take;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, TimerBuilder, TimerTask};
use timer_executor::{Rejected, Task, TaskExecutor};

const MS: Duration = Duration::from_millis(1);

/// Keeps the tasks that it is given.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Vec<Task>>>);

impl Keep {
    fn lose_all(&self) {
        let tasks = take(&mut *self.0.lock().unwrap());
        drop(tasks);
    }
}

impl TaskExecutor for Keep {
    fn execute(&self, task: Task) -> Result<(), Rejected> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

/// Counts how it ends.
#[derive(Clone, Default)]
struct Ends {
    ran: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl TimerTask for Ends {
    fn run(self, _: &Timeout) {
        self.ran.fetch_add(1, SeqCst);
    }
    fn cancelled(self, _: &Timeout) {
        self.cancelled.fetch_add(1, SeqCst);
    }
}

#[test]
fn hopping_along_next_expiry_ends_although_a_timeout_never_comes() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    timer.new_timeout(Duration::MAX, |_| {}).unwrap();
    let mut hops = 0;
    while let Some(next) = driver.next_expiry() {
        driver.advance(next);
        hops += 1;
        assert!(hops < 10, "endless: {next:?} to go at {:?}", driver.elapsed());
    }
    assert_eq!(timer.pending_timeouts(), 1);
}

#[test]
fn a_reset_to_zero_runs_now_although_the_old_deadline_has_passed_within_its_tick() {
    let (timer, mut driver) = Timer::builder().tick_duration(Duration::from_secs(60)).build_driven().unwrap();
    let timeout = timer.new_timeout(Duration::from_nanos(1), |_| {}).unwrap();
    while Instant::now() <= timeout.deadline() {}
    assert!(timeout.reset(Duration::ZERO));
    assert_eq!(driver.turn().expired, 1);
}

#[test]
fn what_an_executor_has_lost_runs_although_the_timer_is_stopped_meanwhile() {
    for lost_first in [true, false] {
        let (keep, ends) = (Keep::default(), Ends::default());
        let (timer, mut driver) = Timer::builder().executor(keep.clone()).build_manual().unwrap();
        timer.new_timeout_task(MS, ends.clone()).unwrap();
        driver.advance(MS);
        if lost_first {
            keep.lose_all();
        }
        assert!(driver.stop().is_empty());
        keep.lose_all();
        assert_eq!((ends.ran.load(SeqCst), ends.cancelled.load(SeqCst)), (1, 0), "lost first: {lost_first}");
    }
}

#[test]
fn a_periodic_task_that_an_executor_loses_after_the_stop_has_an_end() {
    for bound in [None, Some(5)] {
        let keep = Keep::default();
        let builder = Timer::builder().executor(keep.clone());
        let builder = match bound {
            Some(bound) => builder.max_pending_timeouts(bound),
            None => builder,
        };
        let (timer, mut driver) = builder.build_manual().unwrap();
        let heartbeat = timer.schedule_at_fixed_rate(MS, MS, |_| {}).unwrap();
        driver.advance(MS);
        assert_eq!(timer.pending_timeouts(), 1);
        driver.stop();
        keep.lose_all();
        assert_eq!(timer.pending_timeouts(), 0, "with a bound of {bound:?}");
        assert!(heartbeat.is_cancelled());
    }
}

#[test]
fn a_lost_task_that_holds_its_timer_does_not_keep_it_alive() {
    let (keep, guard) = (Keep::default(), Arc::new(()));
    let (timer, mut driver) = Timer::builder().executor(keep.clone()).build_manual().unwrap();
    let (held, kept) = (timer.clone(), guard.clone());
    timer.new_timeout(MS, move |_| drop((held, kept))).unwrap();
    driver.advance(MS);
    keep.lose_all();
    drop((driver, timer));
    assert_eq!(Arc::strong_count(&guard), 1);
}

#[test]
fn a_loop_without_a_waker_is_not_sent_to_sleep_by_somebody_at_work_on_a_shard() {
    // On a shard for each CPU the threads may never meet.
    for builder in [Timer::builder(), Timer::builder().shards(1)] {
        never_sent_to_sleep(builder);
    }
}

fn never_sent_to_sleep(builder: TimerBuilder) {
    let (timer, mut driver) = builder.build_driven().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..2)
        .map(|_| {
            let (timer, over) = (timer.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(SeqCst) {
                    timer.new_timeout(Duration::from_secs(60), |_| {}).unwrap().cancel();
                }
            })
        })
        .collect();
    for _ in 0..20_000 {
        let due = timer.new_timeout(Duration::ZERO, |_| {}).unwrap();
        while !due.is_expired() {
            let turn = driver.turn();
            let soon = turn.next.is_some_and(|next| next <= Instant::now());
            assert!(turn.expired > 0 || soon, "{due:?} waits, and the loop would sleep: {turn:?}");
        }
    }
    over.store(true, SeqCst);
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn a_second_stop_returns_when_the_worker_is_quiet_too() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel::<()>();
    let quiet = Arc::new(AtomicBool::new(false));
    let done = quiet.clone();
    timer
        .new_timeout(Duration::ZERO, move |_| {
            begun.send(()).unwrap();
            released.recv().unwrap();
            done.store(true, SeqCst);
        })
        .unwrap();
    inside.recv().unwrap();
    let stops: Vec<_> = (0..2)
        .map(|_| {
            let (timer, quiet) = (timer.clone(), quiet.clone());
            thread::spawn(move || {
                timer.stop().unwrap();
                quiet.load(SeqCst)
            })
        })
        .collect();
    while timer.new_timeout(Duration::MAX, |_| {}).is_ok() {
        thread::yield_now();
    }
    release.send(()).unwrap();
    assert!(stops.into_iter().all(|stop| stop.join().unwrap()));
}

#[test]
fn a_cancel_that_passes_a_panic_on_can_be_caught() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the drop of a capture");
        }
    }
    let (timer, _driver) = Timer::builder().build_manual().unwrap();
    let bomb = Bomb;
    let timeout = timer.new_timeout(MS, move |_| drop(bomb)).unwrap();
    assert!(std::panic::catch_unwind(|| timeout.cancel()).is_err());
    assert_eq!((timer.pending_timeouts(), timer.stats().cancelled), (0, 1));
}

/// Executors whose tasks are known by a waker at one and the same place while they are polled, and by a clone elsewhere.
mod lent {
    use std::ptr::without_provenance;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::{RawWaker, RawWakerVTable, Waker};

    const LENT: usize = 8;
    static POLLED: AtomicUsize = AtomicUsize::new(0);
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    static TABLE: RawWakerVTable = RawWakerVTable::new(cloned, woken, woken, |_| {});

    fn cloned(data: *const ()) -> RawWaker {
        let task = if data.addr() == LENT { POLLED.load(SeqCst) } else { data.addr() };
        RawWaker::new(without_provenance(task), &TABLE)
    }

    fn woken(data: *const ()) {
        WOKEN.store(data.addr(), SeqCst);
    }

    /// For one poll of this task.
    pub(super) fn waker(task: usize) -> Waker {
        POLLED.store(task, SeqCst);
        // SAFETY: the data is a number that is never read through.
        unsafe { Waker::new(without_provenance(LENT), &TABLE) }
    }

    /// The task that was woken last.
    pub(super) fn woken_task() -> usize {
        WOKEN.load(SeqCst)
    }
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let mut sleep = timer.sleep(MS);
    for task in [100, 200] {
        let waker = lent::waker(task);
        assert!(pin!(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    driver.advance(MS);
    assert_eq!(lent::woken_task(), 200);
}

#[test]
fn a_stop_that_does_not_wait_leaves_nothing_pending() {
    let timer = Timer::new();
    let (begun, inside) = channel();
    let (release, released) = channel::<()>();
    let ends = Ends::default();
    let deadline = Instant::now() + 20 * MS;
    let block = move |_: &Timeout| {
        begun.send(()).unwrap();
        let _ = released.recv();
    };
    // Of one bucket; wherever the one that blocks comes, another is behind it.
    let mut blocks = Some(block);
    for _ in 0..100 {
        timer.new_timeout_task(deadline - Instant::now(), ends.clone()).unwrap();
    }
    let first = blocks.take().unwrap();
    timer.new_timeout_at(deadline, first).unwrap();
    let bell = Arc::new(Bell::default());
    let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep_until(deadline)).collect();
    let waker = Waker::from(bell.clone());
    for sleep in &mut sleeps {
        assert!(pin!(sleep).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    inside.recv().unwrap();
    let report = timer.stop_and_wait(Duration::ZERO).unwrap();
    assert_eq!(report.in_flight, 1);
    drop(report);
    release.send(()).unwrap();
    let patience = Instant::now() + 20_000 * MS;
    while timer.pending_timeouts() > 0 || bell.0.load(SeqCst) < 10 {
        assert!(Instant::now() < patience, "pending {}, woken {}", timer.pending_timeouts(), bell.0.load(SeqCst));
        thread::yield_now();
    }
    assert_eq!(ends.ran.load(SeqCst) + ends.cancelled.load(SeqCst), 100);
}

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Cancels a timeout as it wakes, and then asks how many are queued.
struct Cancels {
    timeout: Timeout,
    timer: Timer,
    queued: Mutex<Option<u64>>,
}

impl Wake for Cancels {
    fn wake(self: Arc<Self>) {
        assert!(self.timeout.cancel());
        *self.queued.lock().unwrap() = Some(self.timer.stats().queued);
    }
}

#[test]
fn what_is_cancelled_at_its_hand_over_is_not_queued() {
    let (timer, mut driver) = Timer::builder().executor(Keep::default()).build_manual().unwrap();
    // Won for the executor before the waker runs, and counted after it.
    let timeout = timer.new_timeout(MS, |_| {}).unwrap();
    let cancels = Arc::new(Cancels { timeout, timer: timer.clone(), queued: Mutex::default() });
    let mut sleep = timer.sleep(MS);
    let waker = Waker::from(cancels.clone());
    assert!(pin!(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(driver.advance(MS), 2);
    assert_eq!(*cancels.queued.lock().unwrap(), Some(0));
    assert_eq!(timer.stats().in_flight, 0);
}

/// Cancels and waits as its thread ends.
struct AtThreadEnd(Option<Timeout>);

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        if let Some(timeout) = self.0.take() {
            assert!(timeout.cancel_and_wait().unwrap());
        }
    }
}

thread_local! {
    static KEPT: RefCell<AtThreadEnd> = const { RefCell::new(AtThreadEnd(None)) };
}

#[test]
fn a_thread_that_ends_may_cancel_and_wait() {
    let (timer, _driver) = Timer::builder().build_manual().unwrap();
    let inside = timer.clone();
    thread::spawn(move || {
        KEPT.with_borrow_mut(|kept| kept.0 = Some(inside.new_timeout(MS, |_| {}).unwrap()));
        let other = inside.new_timeout(MS, |_| {}).unwrap();
        assert!(other.cancel_and_wait().unwrap());
    })
    .join()
    .unwrap();
    assert_eq!(timer.pending_timeouts(), 0);
}
