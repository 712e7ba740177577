//! Timers on one clock: timeouts in memory, in a memory store and in a second store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use timer_core::{ManualDriver, Timeout, Timer};
use timer_durable::store::Store;
use timer_durable::{Due, DurableTimer, DurableTimerBuilder, MemoryStore, Retry, VirtualClock};

use crate::t;

pub const SECOND: Duration = Duration::from_secs(1);
pub const DAY: Duration = Duration::from_secs(86_400);

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
        let trace = self.clone();
        let random = Mutex::new(Rng::with_seed(seed));
        DurableTimer::builder().seed(seed).topic(t(), move |due: &Due<String>| {
            trace.note(place, Duration::from_millis(due.payload().parse()?), due.attempt());
            if random.lock().unwrap().u8(..) < 50 { Err(Retry::new("no bank")) } else { Ok(()) }
        })
    }
}

/// Returns a timer on virtual time, its driver and its clock for durable timers.
pub fn manual() -> (Timer, ManualDriver, VirtualClock) {
    let (memory, driver) = Timer::builder().build_manual().unwrap();
    let clock = VirtualClock::new(&memory);
    (memory, driver, clock)
}

/// Runs timeouts in memory, in a memory store and in a second store, which may crash on the way.
fn run<S: Store>(seed: u64, crashes: bool, open: impl Fn() -> S) -> Vec<Run> {
    let (memory, mut driver, clock) = manual();
    let mut random = Rng::with_seed(seed);
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
            let trace = trace.clone();
            let text = planned.as_millis().to_string();
            match place {
                0 => _ = memory.new_timeout(delay, move |_: &Timeout| trace.note(0, planned, 1)).unwrap(),
                place => _ = timers[place - 1].new_timeout(t(), delay, &text).wait().unwrap(),
            }
        }
        driver.advance(random.u32(0..1_440) * 60 * SECOND);
        if crashes && step % 30 == 29 {
            clock.crash();
            timers = start(seed + step);
        }
    }
    driver.advance(30 * DAY);
    assert!(timers.iter().all(|timer| timer.counts().wait().unwrap().pending == 0));
    std::mem::take(&mut *trace.0.lock().unwrap())
}

/// Checks the promises of one clock, and that the seed alone decides. `open` opens the second store
/// of a number, again after a crash.
pub fn check<S: Store>(open: impl Fn(u64) -> S) {
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
