//! Durable timers on the clock of a timer in memory.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use timer_core::{ManualDriver, Timeout, Timer};
use timer_durable::{
    Done, Due, DurableTimer, DurableTimerBuilder, Error, MemoryStore, Retry, Store, StoreError, TimeoutId, Topic,
    VirtualClock,
};

use crate::scripted::ScriptedStore;
use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The place of a timer in the order of one instant, the time for which a timeout of it was
/// scheduled, its attempt, and the time at which it ran.
type Run = (usize, Duration, u32, Duration);

#[derive(Clone)]
struct Trace(Arc<Mutex<Vec<Run>>>, Timer, std::time::Instant);

impl Trace {
    fn new(memory: &Timer) -> Self {
        Self(Arc::default(), memory.clone(), memory.now())
    }

    fn now(&self) -> Duration {
        self.1.now() - self.2
    }

    fn note(&self, place: usize, planned: Duration, attempt: u32) {
        let now = self.now();
        self.0.lock().unwrap().push((place, planned, attempt, now));
    }

    /// Returns a builder of a timer whose handler notes its runs and sometimes fails. A payload is
    /// a time in milliseconds.
    fn builder(&self, place: usize, seed: u64) -> DurableTimerBuilder {
        let (trace, random) = (self.clone(), Mutex::new(Rng::with_seed(seed)));
        DurableTimer::builder().seed(seed).topic(t(), move |due: &Due<String>| {
            trace.note(place, Duration::from_millis(due.payload().parse()?), due.attempt());
            if random.lock().unwrap().u8(..) < 50 { Err(Retry::new("no bank")) } else { Ok(()) }
        })
    }
}

fn manual() -> (Timer, ManualDriver, VirtualClock) {
    let (memory, driver) = Timer::builder().build_manual().unwrap();
    let clock = VirtualClock::new(&memory);
    (memory, driver, clock)
}

/// Runs timeouts in memory, in a memory store and in a second store, which may crash on the way.
fn run<S: Store>(seed: u64, crashes: bool, open: impl Fn() -> S) -> Vec<Run> {
    let ((memory, mut driver, clock), mut random) = (manual(), Rng::with_seed(seed));
    let trace = Trace::new(&memory);
    let memory_store = MemoryStore::new();
    let start = |seed| {
        let first = trace.builder(1, seed).open_on(memory_store.clone(), &clock).unwrap();
        [first, trace.builder(2, seed).open_on(open(), &clock).unwrap()]
    };
    let mut timers = start(seed);
    for step in 0..100 {
        let delay = random.u32(0..7_200) * 60 * SECOND;
        let planned = trace.now() + delay;
        // They are due at the same time.
        for place in [2, 1, 0, 2] {
            let (trace, text) = (trace.clone(), planned.as_millis().to_string());
            match place {
                0 => _ = memory.new_timeout(delay, move |_: &Timeout| trace.note(0, planned, 1)).unwrap(),
                place => _ = timers[place - 1].new_timeout(t(), delay, &text).unwrap(),
            }
        }
        driver.advance(random.u32(0..1_440) * 60 * SECOND);
        if crashes && step % 30 == 29 {
            clock.crash();
            timers = start(seed + step);
        }
    }
    driver.advance(30 * DAY);
    assert!(timers.iter().all(|timer| timer.counts().unwrap().pending == 0));
    std::mem::take(&mut *trace.0.lock().unwrap())
}

/// Checks the promises of one clock, and that the seed alone decides.
fn check<S: Store>(open: impl Fn(u64) -> S) {
    for (file, (seed, crashes)) in [(7, false), (7, true)].into_iter().enumerate() {
        let runs = run(seed, crashes, || open(file as u64));
        let first: Vec<Run> = runs.iter().copied().filter(|run| run.2 == 1).collect();
        assert_eq!(first.len(), 400, "each timeout has run");
        let late = first.iter().find(|(_, planned, _, ran)| ran != planned);
        assert_eq!(late, None, "each first run is at its time, also after a crash");
        assert!(first.is_sorted_by_key(|(place, planned, ..)| (*planned, *place)), "{first:?}");
        assert!(runs.len() > 440 && runs.is_sorted_by_key(|run| run.3), "retries are in order, too");
        assert_eq!(run(seed, crashes, || open(10 + file as u64)), runs, "the same runs");
        assert_ne!(run(seed + 1, crashes, || open(20 + file as u64)), runs);
    }
}

#[test]
fn timers_on_one_clock_keep_the_order_of_time() {
    let stores = [(); 32].map(|()| MemoryStore::new());
    check(|file| stores[file as usize].clone());
}

#[cfg(feature = "sqlite")]
#[test]
fn a_file_on_the_clock_of_a_timer_goes_on_after_a_crash() {
    let folder = crate::folder::Folder::new();
    check(|file| timer_durable::SqliteStore::open(folder.path().join(file.to_string())).unwrap());
}

#[test]
fn equal_due_times_run_in_the_order_of_their_ids() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (_memory, mut driver, clock) = manual();
    let runs = Arc::new(Mutex::new(Vec::new()));
    let mut builder = DurableTimer::builder();
    for name in NAMES {
        let runs = runs.clone();
        let note = move |due: &Due<String>| {
            runs.lock().unwrap().push(due.payload().clone());
            Ok(())
        };
        // An executor of its own makes no difference.
        builder = builder.topic(Topic::new(name), note).executor(timer_executor::ImmediateExecutor);
    }
    let timer = builder.open_on(MemoryStore::new(), &clock).unwrap();
    let explicit = timer.timeout_builder(Topic::<String>::new("a"), "explicit").id(TimeoutId::new());
    explicit.after(DAY).schedule().unwrap();
    NAMES.iter().for_each(|name| _ = timer.new_timeout(Topic::<String>::new(name), DAY, *name).unwrap());
    driver.advance(DAY);
    assert_eq!(runs.lock().unwrap().join(" "), "a b c d e f g h explicit");
}

#[test]
fn a_cancelled_timeout_does_not_move_the_time() {
    let (memory, driver, clock) = manual();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open_on(MemoryStore::new(), &clock).unwrap();
    let [first, second] = [DAY, 2 * DAY].map(|delay| timer.new_timeout(t(), delay, &()).unwrap());
    assert_eq!(driver.next_deadline(), Some(memory.now() + DAY));
    timer.cancel_by_id(first).unwrap();
    assert_eq!(memory.pending_timeouts(), 1);
    assert_eq!(driver.next_deadline(), Some(memory.now() + 2 * DAY));
    timer.cancel_by_id(second).unwrap();
    assert_eq!(driver.next_deadline(), None);
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[test]
fn an_async_handler_ends_at_its_limit_or_when_it_is_ready() {
    const NEXT: Topic<()> = Topic::new("next");
    let (memory, mut driver, clock) = manual();
    let (tasks, is_ready) = (Arc::new(Mutex::new(Vec::<Task>::new())), Arc::new(Mutex::new(false)));
    let (spawned, ready) = (tasks.clone(), is_ready.clone());
    let timer = DurableTimer::builder()
        .spawn(move |task| spawned.lock().unwrap().push(task))
        .topic_async(t().backoff_by(|_| SECOND), move |_: Due<()>| {
            let ready = ready.clone();
            async move {
                poll_fn(|_| if *ready.lock().unwrap() { Poll::Ready(()) } else { Poll::Pending }).await;
                Ok(Done::then(NEXT, DAY, &()))
            }
        })
        .time_limit(10 * SECOND)
        .topic(NEXT, |_: &Due<()>| Ok(()))
        .open_on(MemoryStore::new(), &clock)
        .unwrap();
    timer.new_timeout(t::<()>(), SECOND, &()).unwrap();
    driver.advance(SECOND);
    assert_eq!(driver.next_deadline(), Some(memory.now() + 10 * SECOND), "the limit");
    driver.advance(10 * SECOND);
    assert_eq!(timer.stats().timed_out, 1);
    driver.advance(SECOND);
    *is_ready.lock().unwrap() = true;
    for mut task in std::mem::take(&mut *tasks.lock().unwrap()) {
        (&mut task).now_or_never().expect("the handler is cut off or ready");
    }
    assert_eq!(timer.stats().done, 1, "its end is written without another call");
    assert_eq!(driver.next_deadline(), Some(memory.now() + DAY));
}

#[cfg(feature = "sqlite")]
#[test]
fn a_file_that_fails_does_not_stop_virtual_time() {
    let folder = crate::folder::Folder::new();
    let store = timer_durable::SqliteStore::open(folder.file()).unwrap();
    let (timer, mut driver) = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).build_manual(store).unwrap();
    timer.new_timeout(t::<()>(), SECOND, &()).unwrap();
    assert!(timer.get_by_id_async(t::<()>(), TimeoutId::new()).now_or_never().is_some(), "no thread reads");
    let sql = |sql: &'static str| timer.transaction(move |tx| Ok(tx.connection().execute_batch(sql)?)).unwrap();
    sql("create trigger refusal before update of begun on timeout begin select raise(abort, 'not now'); end");
    assert_eq!(driver.advance(60 * SECOND), 0);
    sql("drop trigger refusal");
    assert_eq!(driver.advance(60 * SECOND), 1);
    timer.new_timeout(t::<()>(), SECOND, &()).unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    assert_eq!(driver.advance(60 * SECOND), 0);
    assert!(matches!(timer.new_timeout(t::<()>(), SECOND, &()), Err(Error::Store(_))));
}

#[cfg(feature = "sqlite")]
#[test]
fn timeouts_of_a_downtime_are_overdue() {
    let (folder, (_memory, mut driver, clock)) = (crate::folder::Folder::new(), manual());
    let open = || {
        let store = timer_durable::SqliteStore::open(folder.file()).unwrap();
        DurableTimer::builder().overdue_rate(1).topic(t(), |_: &Due<()>| Ok(())).open_on(store, &clock).unwrap()
    };
    let timer = open();
    (0..3).for_each(|_| _ = timer.new_timeout(t::<()>(), DAY, &()).unwrap());
    clock.crash();
    assert!(matches!(timer.new_timeout(t::<()>(), DAY, &()), Err(Error::Stopped)));
    driver.advance(2 * DAY);
    let timer = open();
    let done = [Duration::ZERO, SECOND, SECOND].map(|by| {
        driver.advance(by);
        timer.stats().done
    });
    assert_eq!(done, [1, 2, 3]);
    timer.new_timeout(t::<()>(), 60 * DAY, &()).unwrap();
    let turns = timer.stats().turns;
    assert_eq!((driver.advance(30 * DAY), timer.stats().turns), (0, turns), "D14");
    timer.pause(t::<()>()).unwrap();
    driver.advance(90 * DAY);
    let turns = timer.stats().turns - turns;
    assert!(turns < 10, "no look at the figures of a paused topic stops the time: {turns} turns");
    assert_eq!(clock.now(), std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + 122 * DAY + 2 * SECOND);
}

#[test]
fn the_clock_of_another_cannot_be_moved() {
    let error = DurableTimer::builder().build_manual(ScriptedStore::new()).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Unsupported("virtual time"))), "{error}");
}
