//! Each cause of lateness alone: its part has nearly all of the lateness, and the parts add up.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use timer_durable::DurableLateCause::{self, Executor, Lease, Paused, Places, PutBack, Rate, Store as AtWork, System};
use timer_durable::store::{Store, StoreTransaction};
use timer_durable::transaction::{Insert, Operation};
use timer_durable::{
    Due, DurableLateness, DurableTimer, DurableTimerBuilder, Fault, MemoryStore, Retry, TimeoutId, Topic,
};
use timer_executor::{Task, ThreadPoolExecutor};

use crate::scripted::ScriptedStore;
use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// The sum of the lateness that handlers have measured.
type Measured = Arc<Mutex<Duration>>;

type Open = fn(&Measured) -> DurableTimerBuilder;

fn builder(measured: &Measured) -> DurableTimerBuilder {
    let measured = measured.clone();
    DurableTimer::builder().topic(t(), move |due: &Due<()>| -> Result<(), Retry> {
        *measured.lock().unwrap() += due.lag();
        Ok(())
    })
}

/// Adds handlers that take a place for 10 s.
fn occupying(builder: DurableTimerBuilder, measured: &Measured) -> DurableTimerBuilder {
    let measured = measured.clone();
    let hangs = move |due: Due<()>| {
        *measured.lock().unwrap() += due.lag();
        async { Ok(()) }
    };
    let topic = Topic::new("t").attempts(1);
    builder.spawn(std::mem::forget).topic_async(topic, hangs).time_limit(10 * SECOND)
}

fn schedule(timer: &DurableTimer, count: usize, delay: Duration) {
    (0..count).for_each(|_| _ = timer.new_timeout(t(), delay, &()).wait().unwrap());
}

fn parts(lateness: &DurableLateness) -> Vec<(DurableLateCause, Duration)> {
    let parts = DurableLateCause::ALL.map(|cause| (cause, lateness.part(cause)));
    parts.into_iter().filter(|(_, part)| !part.is_zero()).collect()
}

fn assert_cause(timer: &DurableTimer, measured: &Measured, cause: DurableLateCause, total: Duration) {
    let lateness = timer.stats().lateness;
    let measured = *measured.lock().unwrap();
    assert_eq!((measured, lateness.total()), (total, total), "{lateness:?}");
    assert_eq!(parts(&lateness).iter().map(|(_, part)| *part).sum::<Duration>(), total);
    assert!(lateness.part(cause) >= total * 95 / 100, "{lateness:?}");
    assert_eq!(lateness.main_cause(), Some(cause));
    assert_eq!(timer.stats().topics["t"].lateness, lateness);
}

#[test]
fn a_slow_commit_is_the_store() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, mut driver) = builder(&measured).build_manual(store.clone()).unwrap();
    schedule(&timer, 1, 10 * SECOND);
    store.inject(Fault::Delay(3 * SECOND));
    driver.advance(10 * SECOND);
    assert_cause(&timer, &measured, AtWork, 3 * SECOND);
    // The commit of another call takes from 14 s to 19 s.
    schedule(&timer, 1, 2 * SECOND);
    store.inject(Fault::Delay(5 * SECOND));
    schedule(&timer, 1, 3600 * SECOND);
    driver.run_due();
    assert_cause(&timer, &measured, AtWork, 6 * SECOND);
}

#[test]
fn the_limit_of_attempts_is_the_places() {
    let limits: [Open; 2] = [
        |measured| occupying(DurableTimer::builder().max_running(1), measured),
        |measured| occupying(DurableTimer::builder(), measured).max_running(1),
    ];
    for limit in limits {
        let measured = Measured::default();
        let (timer, mut driver) = limit(&measured).build_manual(MemoryStore::new()).unwrap();
        schedule(&timer, 3, SECOND);
        (0..60).for_each(|_| _ = driver.advance(SECOND));
        assert_cause(&timer, &measured, Places, 30 * SECOND);
    }
}

#[test]
fn overdue_timeouts_wait_for_their_places_or_their_rate() {
    let opens: [(Open, _, _); 2] = [
        (|measured| occupying(DurableTimer::builder().max_running(2), measured), Places, 10 * SECOND),
        (|measured| builder(measured).overdue_rate(1), Rate, SECOND),
    ];
    for (open, cause, waited) in opens {
        let store = MemoryStore::new();
        let measured = Measured::default();
        let (timer, driver) = builder(&measured).build_manual(store.clone()).unwrap();
        schedule(&timer, 2, SECOND);
        driver.crash();
        let late = SECOND / 1_000;
        store.advance_clock(SECOND + late);
        let (timer, mut driver) = open(&measured).build_manual(store).unwrap();
        (0..60).for_each(|_| _ = driver.advance(SECOND));
        assert_cause(&timer, &measured, cause, 2 * late + waited);
    }
}

#[test]
fn a_pause_is_its_own_cause() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, mut driver) = builder(&measured).build_manual(store.clone()).unwrap();
    timer.pause(t::<()>()).wait().unwrap();
    schedule(&timer, 5, 10 * SECOND);
    driver.advance(40 * SECOND);
    timer.resume(t::<()>()).wait().unwrap();
    driver.run_due();
    assert_cause(&timer, &measured, Paused, 150 * SECOND);
}

#[test]
fn a_late_start_is_the_lease() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, driver) = builder(&measured).build_manual(store.clone()).unwrap();
    schedule(&timer, 5, 10 * SECOND);
    driver.crash();
    store.advance_clock(100 * SECOND);
    let (timer, mut driver) = builder(&measured).build_manual(store).unwrap();
    driver.run_due();
    assert_cause(&timer, &measured, Lease, 450 * SECOND);
}

/// A timeout that waited here already is not late by the take-over.
#[test]
fn a_take_over_is_the_lease() {
    let store = ScriptedStore::new();
    let (entered, enters) = channel();
    let (free, wait) = channel::<()>();
    let wait: Mutex<Receiver<()>> = Mutex::new(wait);
    let handler = move |_: &Due<()>| {
        entered.send(()).map_err(Retry::new)?;
        wait.lock().unwrap().recv().map_err(Retry::new)
    };
    let timer = DurableTimer::builder().max_running(1).topic(t(), handler).open(store.clone()).wait().unwrap();
    schedule(&timer, 1, Duration::ZERO);
    enters.recv_timeout(PATIENCE).unwrap();
    schedule(&timer, 1, 10 * SECOND);
    let mut dead_node = store.memory.clone();
    let due = dead_node.now() + 20_000_000;
    dead_node.execute(&Operation::Insert(Insert::new(TimeoutId::new(), due, "t"))).unwrap();
    store.memory.advance_clock(30 * SECOND);
    store.gain_shards();
    timer.counts().wait().unwrap();
    (0..3).for_each(|_| free.send(()).unwrap());
    (0..2).for_each(|_| enters.recv_timeout(PATIENCE).unwrap());
    timer.stop(PATIENCE).wait().unwrap();
    let lateness = timer.stats().lateness;
    let all = lateness.total() - lateness.part(Executor);
    assert_eq!((lateness.part(Lease), all), (10 * SECOND, 30 * SECOND), "{lateness:?}");
}

#[test]
fn the_rate_of_a_topic_is_its_own_cause() {
    let measured = Measured::default();
    let (timer, mut driver) = builder(&measured).rate(1, 10 * SECOND).build_manual(MemoryStore::new()).unwrap();
    schedule(&timer, 3, SECOND);
    driver.advance(60 * SECOND);
    // The burst is a tenth of a second.
    assert_cause(&timer, &measured, Rate, 30 * SECOND - SECOND / 5);
}

/// Two commits of other calls, one after the other, take a bit longer than the interval.
#[test]
fn a_rate_is_the_cause_while_the_keeper_works() {
    let opens: [Open; 2] =
        [|measured| builder(measured).rate(1, 10 * SECOND), |measured| builder(measured).overdue_rate(1)];
    for (open, interval) in opens.into_iter().zip([10 * SECOND, SECOND]) {
        let store = MemoryStore::new();
        let measured = Measured::default();
        let (timer, driver) = builder(&measured).build_manual(store.clone()).unwrap();
        schedule(&timer, 2, Duration::ZERO);
        driver.crash();
        store.advance_clock(SECOND);
        let (timer, mut driver) = open(&measured).build_manual(store.clone()).unwrap();
        driver.run_due();
        let work = interval * 6 / 10;
        (0..2).for_each(|_| {
            store.inject(Fault::Delay(work));
            schedule(&timer, 1, 3600 * SECOND);
        });
        driver.run_due();
        let lateness = timer.stats().lateness;
        assert_eq!(parts(&lateness), [(Lease, 2 * SECOND), (Rate, interval), (AtWork, interval / 5)]);
        assert_eq!(lateness.total(), *measured.lock().unwrap());
    }
}

/// A commit takes from 0.5 s to 3.5 s, so the first two of five runs that are due at 1 s begin as a
/// burst.
#[test]
fn a_slow_commit_is_the_store_for_a_topic_with_a_rate() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, mut driver) = builder(&measured).rate(10, SECOND).build_manual(store.clone()).unwrap();
    schedule(&timer, 5, SECOND);
    driver.advance(SECOND / 2);
    store.inject(Fault::Delay(3 * SECOND));
    schedule(&timer, 1, 3600 * SECOND);
    driver.advance(SECOND);
    let lateness = timer.stats().lateness;
    let millis = Duration::from_millis;
    assert_eq!(parts(&lateness), [(Rate, millis(1_200)), (AtWork, millis(11_900))]);
}

#[test]
fn a_late_wake_up_is_the_system() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, mut driver) = builder(&measured).build_manual(store.clone()).unwrap();
    schedule(&timer, 2, 10 * SECOND);
    store.advance_clock(15 * SECOND);
    driver.run_due();
    assert_cause(&timer, &measured, System, 10 * SECOND);
}

#[test]
fn the_wait_for_a_handler_is_its_own_cause() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, driver) = builder(&measured).build_manual(store.clone()).unwrap();
    schedule(&timer, 1, 10 * SECOND);
    driver.crash();
    drop(timer);
    let (timer, mut driver) = DurableTimer::builder().build_manual(store.clone()).unwrap();
    driver.advance(10 * SECOND);
    assert_eq!((timer.stats().without_handler, timer.stats().lateness), (1, DurableLateness::default()));
    driver.crash();
    drop(timer);
    let (timer, mut driver) = builder(&measured).build_manual(store).unwrap();
    driver.advance(60 * SECOND);
    assert_eq!(*measured.lock().unwrap(), Duration::ZERO, "its due time was moved");
    *measured.lock().unwrap() = 60 * SECOND;
    assert_cause(&timer, &measured, PutBack, 60 * SECOND);
}

/// The clock of the store stands still, so the lateness is the wait for the only thread.
#[test]
fn the_wait_for_a_thread_is_the_executor() {
    let (free, wait) = channel::<()>();
    let wait: Mutex<Receiver<()>> = Mutex::new(wait);
    let (ran, runs) = channel();
    let handler = move |_: &Due<()>| {
        let _free = wait.lock().unwrap().recv_timeout(PATIENCE);
        ran.send(()).map_err(Retry::new)
    };
    let builder = DurableTimer::builder().executor(ThreadPoolExecutor::new(1)).topic(t(), handler);
    let timer = builder.open(MemoryStore::new()).wait().unwrap();
    schedule(&timer, 2, Duration::ZERO);
    while timer.stats().begun < 2 {
        std::thread::yield_now();
    }
    std::thread::park_timeout(SECOND);
    (0..2).for_each(|_| free.send(()).unwrap());
    (0..2).for_each(|_| runs.recv_timeout(PATIENCE).unwrap());
    timer.stop(PATIENCE).wait().unwrap();
    let lateness = timer.stats().lateness;
    assert!(lateness.part(Executor) >= SECOND && lateness.part(Executor) == lateness.total(), "{lateness:?}");
    assert_eq!(timer.worst()[0].lateness.main_cause(), Some(Executor));
}

#[test]
fn an_executor_that_holds_up_the_keeper_is_its_own_cause() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let clock = store.clone();
    let executor = move |task: Task| {
        clock.advance_clock(3 * SECOND);
        task.run();
    };
    let timer = builder(&measured).executor(executor).open(store.clone()).wait().unwrap();
    schedule(&timer, 1, SECOND);
    schedule(&timer, 1, 2 * SECOND);
    store.advance_clock(SECOND);
    timer.counts().wait().unwrap();
    while timer.stats().done < 2 {
        std::thread::yield_now();
    }
    let lateness = timer.stats().lateness;
    let parts = [System, AtWork].map(|cause| lateness.part(cause));
    assert!(parts == [Duration::ZERO; 2] && lateness.part(Executor) >= 2 * SECOND, "{lateness:?}");
}

/// A caller's waker takes three seconds on the store's clock.
#[test]
fn the_own_work_of_the_keeper_is_not_the_store() {
    struct Slow(MemoryStore);
    impl Wake for Slow {
        fn wake(self: Arc<Self>) {
            self.0.advance_clock(3 * SECOND);
        }
    }
    let store = ScriptedStore::new();
    let measured = Measured::default();
    let timer = builder(&measured).open(store.clone()).wait().unwrap();
    schedule(&timer, 1, SECOND);
    let (polled, polls) = channel::<()>();
    store.on_write(move |_| {
        let _first = polls.recv();
        None
    });
    let mut call = Box::pin(timer.new_timeout(t(), 3600 * SECOND, &()));
    let waker = Waker::from(Arc::new(Slow(store.memory.clone())));
    assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(polled);
    while timer.stats().done == 0 {
        std::thread::yield_now();
    }
    let lateness = timer.stats().lateness;
    assert_eq!((lateness.part(System), lateness.part(AtWork)), (2 * SECOND, Duration::ZERO), "{lateness:?}");
}

/// Its begin waits apart from all others while a trigger refuses it.
#[test]
fn a_refused_begin_is_the_store() {
    let store = ScriptedStore::new();
    let measured = Measured::default();
    let timer = builder(&measured).open(store.clone()).wait().unwrap();
    let is_refused = Arc::new(AtomicBool::new(true));
    let refuses = is_refused.clone();
    store.refuse(move |operation| matches!(operation, Operation::Begin(_)) && refuses.load(Ordering::Relaxed));
    let until = |is_done: &dyn Fn() -> bool| {
        while !is_done() {
            std::thread::park_timeout(SECOND / 100);
        }
    };
    schedule(&timer, 1, Duration::ZERO);
    until(&|| timer.stats().store_errors > 0);
    store.memory.advance_clock(15 * SECOND);
    // ORDERING: Relaxed, the store asks again and again.
    is_refused.store(false, Ordering::Relaxed);
    until(&|| timer.stats().done > 0);
    timer.stop(PATIENCE).wait().unwrap();
    let lateness = timer.stats().lateness;
    assert_eq!((lateness.part(AtWork), *measured.lock().unwrap()), (15 * SECOND, 15 * SECOND), "{lateness:?}");
}

#[test]
fn several_causes_each_have_their_part() {
    let store = MemoryStore::new();
    let measured = Measured::default();
    let (timer, driver) = builder(&measured).build_manual(store.clone()).unwrap();
    timer.pause(t::<()>()).wait().unwrap();
    schedule(&timer, 1, 10 * SECOND);
    driver.crash();
    drop(timer);
    // Due at 10 s, opened at 40 s, resumed at 60 s, with a commit until 62 s.
    store.advance_clock(40 * SECOND);
    let (timer, mut driver) = builder(&measured).build_manual(store.clone()).unwrap();
    driver.advance(20 * SECOND);
    store.inject(Fault::Delay(2 * SECOND));
    timer.resume(t::<()>()).wait().unwrap();
    driver.run_due();
    let lateness = timer.stats().lateness;
    assert_eq!(parts(&lateness), [(Lease, 30 * SECOND), (Paused, 20 * SECOND), (AtWork, 2 * SECOND)]);
    assert_eq!(lateness.total(), *measured.lock().unwrap());
}
