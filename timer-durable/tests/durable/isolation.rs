//! Topics that are paused, limited or hang, beside others.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::executor::block_on;
use timer_durable::store::Reader;
use timer_durable::transaction::Operation;
use timer_durable::{
    Due, DurableTimer, DurableTimerBuilder, Error, IfPending, ManualDurableDriver, MemoryStore, Retry, Schedule, Topic,
};
use timer_executor::ThreadPoolExecutor;

use crate::scripted::ScriptedStore;
use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
const OTHER: Topic<()> = Topic::new("other");

/// The lateness of each run of a topic.
type Lags = Arc<Mutex<Vec<Duration>>>;

fn noting(lags: &Lags) -> impl Fn(&Due<()>) -> Result<(), Retry> + use<> {
    let lags = lags.clone();
    move |due| {
        lags.lock().unwrap().push(due.lag());
        Ok(())
    }
}

struct Bench {
    timer: DurableTimer,
    driver: ManualDurableDriver,
    topic: Lags,
    other: Lags,
}

/// Opens a timer with little memory. `limit` sets the limits of the first topic.
fn open(store: MemoryStore, limit: fn(DurableTimerBuilder) -> DurableTimerBuilder) -> Bench {
    let topic = Lags::default();
    let other = Lags::default();
    let builder = limit(DurableTimer::builder().capacity(64).topic(t(), noting(&topic)));
    let (timer, driver) = builder.topic(OTHER, noting(&other)).build_manual(store).unwrap();
    Bench { timer, driver, topic, other }
}

fn schedule(timer: &DurableTimer, topic: Topic<()>, count: usize, delay: Duration) {
    (0..count).for_each(|_| _ = timer.new_timeout(topic, delay, &()).wait().unwrap());
}

fn count(lags: &Lags) -> usize {
    lags.lock().unwrap().len()
}

#[test]
fn a_paused_topic_delays_no_other() {
    const MANY: usize = 1_000;
    let store = MemoryStore::new();
    let mut bench = open(store.clone(), |builder| builder);
    bench.timer.pause(t::<()>()).wait().unwrap();
    schedule(&bench.timer, t(), MANY, SECOND);
    (1..=20).for_each(|n| schedule(&bench.timer, OTHER, 10, n * SECOND));
    assert_eq!(bench.driver.advance(10 * SECOND), 100);
    // After a restart, the rows of the topic are overdue.
    bench.driver.crash();
    let mut bench = open(store.clone(), |builder| builder);
    assert_eq!(bench.timer.paused_topics().wait().unwrap(), ["t"]);
    assert_eq!(bench.driver.advance(10 * SECOND), 100);
    let late = bench.other.lock().unwrap().iter().filter(|lag| !lag.is_zero()).count();
    assert_eq!((late, count(&bench.topic), bench.timer.counts().wait().unwrap().pending), (0, 0, MANY as u64));
    schedule(&bench.timer, OTHER, 1, SECOND);
    bench.timer.resume(t::<()>()).wait().unwrap();
    assert_eq!((bench.driver.advance(SECOND), count(&bench.topic)), (MANY + 1, MANY), "D2");
    assert_eq!(bench.timer.paused_topics().wait().unwrap(), [""; 0]);
}

#[test]
fn many_due_timeouts_of_a_paused_topic_are_not_in_front_of_others() {
    const MANY: usize = 2_000;
    let store = ScriptedStore::new();
    store.set_max_sleep(Duration::from_millis(10));
    let (begun, begins) = channel();
    store.on_write(move |batch| {
        batch
            .iter()
            .for_each(|operation| _ = if let Operation::Begin(id) = operation { begun.send(*id) } else { Ok(()) });
        None
    });
    let builder = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).topic(OTHER, |_: &Due<()>| Ok(()));
    let timer = builder.open(store.clone()).wait().unwrap();
    let calls: Vec<_> = (0..MANY).map(|_| timer.new_timeout(t(), SECOND, &())).collect();
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    let other = timer.new_timeout(OTHER, 2 * SECOND, &()).wait().unwrap();
    // The memory is loaded again, with the topics.
    timer.pause(t::<()>()).wait().unwrap();
    store.memory.advance_clock(10 * SECOND);
    let before = begins.iter().take_while(|id| *id != other).count();
    assert!(before <= 32, "{before} of the paused topic came first");
    timer.resume(t::<()>()).wait().unwrap();
    assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
}

/// The rows of the other topic are behind all of those of the topic that is paused.
#[test]
fn the_rows_of_a_paused_topic_are_not_read_to_find_those_behind_them() {
    const MANY: usize = 5_000;
    let store = MemoryStore::new();
    let bench = open(store.clone(), |builder| builder);
    schedule(&bench.timer, t(), MANY, SECOND);
    schedule(&bench.timer, OTHER, 10, 2 * SECOND);
    bench.timer.pause(t::<()>()).wait().unwrap();
    bench.driver.crash();
    store.advance_clock(10 * SECOND);
    let mut bench = open(store, |builder| builder);
    assert_eq!((bench.driver.advance(Duration::ZERO), count(&bench.other)), (10, 10));
    let loaded = bench.timer.stats().loaded;
    assert!(loaded < 20, "{loaded} timeouts were read");
    bench.timer.resume(t::<()>()).wait().unwrap();
    assert_eq!(bench.driver.advance(Duration::ZERO), MANY, "D2");
}

#[test]
fn a_timeout_that_is_moved_by_its_id_keeps_its_topic() {
    let store = MemoryStore::new();
    let mut bench = open(store.clone(), |builder| builder);
    schedule(&bench.timer, t(), 100, 10 * SECOND);
    let [late, paused] = [1, 2].map(|_| bench.timer.new_timeout(t(), 60 * SECOND, &()).wait().unwrap());
    assert!(bench.timer.stats().in_memory < 100, "neither is in memory");
    // The other topic has all of its timeouts in memory, so the moved ones may be before its bound.
    bench.timer.reset_by_id(late, SECOND).wait().unwrap();
    assert_eq!((bench.driver.advance(SECOND), count(&bench.topic)), (1, 1));
    bench.timer.pause(t::<()>()).wait().unwrap();
    bench.timer.reset_by_id(paused, SECOND).wait().unwrap();
    assert_eq!(bench.driver.advance(SECOND), 0, "its topic is paused");
    bench.timer.resume(t::<()>()).wait().unwrap();
    assert_eq!(bench.driver.advance(Duration::ZERO), 1);
    assert_eq!(bench.topic.lock().unwrap()[1], Duration::ZERO, "it was due at this time");
}

#[test]
fn a_resumed_topic_takes_half_of_the_places() {
    let (timer, mut driver) = DurableTimer::builder()
        .max_running(4)
        // The handlers do not end, because nothing polls their futures.
        .spawn(std::mem::forget)
        .topic_async(t(), |_: Due<()>| async { Ok(()) })
        .topic(OTHER, |_: &Due<()>| Ok(()))
        .build_manual(MemoryStore::new())
        .unwrap();
    timer.pause(t::<()>()).wait().unwrap();
    schedule(&timer, t(), 50, SECOND);
    driver.advance(SECOND);
    timer.resume(t::<()>()).wait().unwrap();
    schedule(&timer, OTHER, 50, SECOND);
    driver.advance(SECOND);
    assert_eq!((timer.stats().running, timer.stats().done), (2, 50));
}

#[test]
fn a_paused_topic_does_not_use_the_rate_of_overdue_timeouts() {
    let store = MemoryStore::new();
    let bench = open(store.clone(), |builder| builder);
    bench.timer.pause(t::<()>()).wait().unwrap();
    schedule(&bench.timer, t(), 100, SECOND);
    schedule(&bench.timer, OTHER, 1, 2 * SECOND);
    bench.driver.crash();
    store.advance_clock(60 * SECOND);
    let mut bench = open(store, |builder| builder.overdue_rate(10));
    assert_eq!(bench.driver.advance(SECOND), 1, "D13");
}

#[test]
fn a_paused_timeout_can_be_moved_and_cancelled() {
    let mut bench = open(MemoryStore::new(), |builder| builder);
    block_on(bench.timer.pause(t::<()>())).unwrap();
    let keys = ["moved", "cancelled", "replaced", "earlier"];
    let put = |bench: &Bench, key: &str, delay, if_pending| {
        bench.timer.schedule(t(), Schedule::after(delay).key(key).if_pending(if_pending), &()).wait().unwrap();
    };
    keys.iter().for_each(|key| put(&bench, key, SECOND, IfPending::Keep));
    assert_eq!(bench.driver.advance(2 * SECOND), 0, "the topic is paused");
    bench.timer.reset(t::<()>(), "moved", 10 * SECOND).wait().unwrap();
    bench.timer.cancel(t::<()>(), "cancelled").wait().unwrap();
    put(&bench, "replaced", 20 * SECOND, IfPending::Replace);
    put(&bench, "earlier", SECOND, IfPending::Earlier);
    block_on(bench.timer.resume(t::<()>())).unwrap();
    assert_eq!([0, 9, 1, 10].map(|seconds| bench.driver.advance(seconds * SECOND)), [1, 0, 1, 1]);
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 0);
}

#[test]
fn a_rate_belongs_to_its_topic() {
    let mut bench = open(MemoryStore::new(), |builder| builder.rate(2, Duration::from_secs(10)));
    schedule(&bench.timer, t(), 10, SECOND);
    (1..=20).for_each(|n| schedule(&bench.timer, OTHER, 10, n * SECOND));
    bench.driver.advance(21 * SECOND);
    assert_eq!((count(&bench.topic), count(&bench.other)), (5, 200));
    assert!(bench.other.lock().unwrap().iter().all(Duration::is_zero));
    bench.driver.advance(25 * SECOND);
    let seconds: Vec<u64> = bench.topic.lock().unwrap().iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [0, 4, 9, 14, 19, 24, 29, 34, 39, 44], "with a burst of a tenth of a second");
}

#[test]
fn a_topic_that_hangs_delays_no_other() {
    let store = MemoryStore::new();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let (entered, enters) = channel();
    let hangs = move |_: &Due<()>| {
        entered.send(()).map_err(Retry::new)?;
        let _open = gate.lock().unwrap().recv();
        Ok(())
    };
    let (ran, runs) = channel();
    let timer = DurableTimer::builder()
        .capacity(64)
        .max_running(8)
        .topic(t(), hangs)
        .executor(ThreadPoolExecutor::new(2))
        .max_running(4)
        .topic(OTHER, move |_: &Due<()>| ran.send(()).map_err(Retry::new))
        .open(store.clone())
        .wait()
        .unwrap();
    schedule(&timer, t(), 1_000, Duration::ZERO);
    enters.recv_timeout(PATIENCE).unwrap();
    for _ in 0..20 {
        schedule(&timer, OTHER, 10, Duration::ZERO);
        (0..10).for_each(|_| runs.recv_timeout(PATIENCE).expect("the other topic goes on"));
    }
    let stats = timer.stats();
    assert!(stats.in_memory <= 64, "{stats:?}");
    drop(open);
    (1..1_000).for_each(|_| enters.recv_timeout(PATIENCE).expect("D2"));
    timer.stop(PATIENCE).wait().unwrap();
    assert_eq!(timer.stats().done, 1_200);
    assert_eq!(store.clone().counts().unwrap().pending, 0);
}

#[test]
fn a_batch_of_begins_does_not_exceed_a_limit() {
    let (timer, mut driver) = DurableTimer::builder()
        // The handlers do not end, because nothing polls their futures.
        .spawn(std::mem::forget)
        .topic_async(t(), |_: Due<()>| async { Ok(()) })
        .max_running(2)
        .topic(OTHER, |_: &Due<()>| Ok(()))
        .build_manual(MemoryStore::new())
        .unwrap();
    schedule(&timer, t(), 50, SECOND);
    schedule(&timer, OTHER, 50, SECOND);
    driver.advance(SECOND);
    assert_eq!((timer.stats().running, timer.stats().done), (2, 50));
}

#[test]
fn limits_that_are_not_allowed_are_refused() {
    let refused = |limit: fn(DurableTimerBuilder) -> DurableTimerBuilder| {
        let builder = limit(DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())));
        match builder.build_manual(MemoryStore::new()) {
            Err(Error::Setting { name, .. }) => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|builder| builder.max_running(0)), "max_running");
    assert_eq!(refused(|builder| builder.rate(0, SECOND)), "rate");
    assert_eq!(refused(|builder| builder.rate(1, Duration::ZERO)), "rate");
}
