//! A ledger of each way to schedule. No timeout is due before its delay has passed since the call,
//! and no handler starts before that.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use timer_durable::{
    Done, Due, DurableTimer, DurableTimerBuilder, IfPending, Later, Retry, Schedule, Topic, WeakDurableTimer,
};

pub const DELAY: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);

/// The payload is the name of the way, which is the key as well.
pub const WAY: Topic<String> = Topic::new("way").backoff_by(|_| DELAY);

/// The time that a transaction works before it schedules, and that a handler takes.
pub const WORK: Duration = Duration::from_millis(3);

/// Works for a while on the real clock.
pub fn work() {
    let begun = Instant::now();
    while begun.elapsed() < WORK {
        std::hint::spin_loop();
    }
}

pub struct Ledger {
    /// The store's clock.
    now: Box<dyn Fn() -> SystemTime + Send + Sync>,
    work: Box<dyn Fn() + Send + Sync>,
    /// The earliest moment at which each way may run.
    earliest: Mutex<HashMap<String, SystemTime>>,
    began: Sender<String>,
    timer: OnceLock<WeakDurableTimer>,
}

impl Ledger {
    /// Returns a ledger, a builder with its handler, and the handler's messages. A message is a way
    /// that has begun, or a fault.
    pub fn new(
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
        work: impl Fn() + Send + Sync + 'static,
    ) -> (Arc<Self>, DurableTimerBuilder, Receiver<String>) {
        let (began, ways) = channel();
        let now = Box::new(now);
        let work = Box::new(work);
        let ledger = Arc::new(Self { now, work, earliest: Mutex::default(), began, timer: OnceLock::new() });
        let handler = ledger.clone();
        (ledger, DurableTimer::builder().topic(WAY, move |due: &Due<String>| handler.handle(due)), ways)
    }

    /// Notes that a way is called now. Returns its name.
    pub fn note<'w>(&self, way: &'w str) -> &'w str {
        self.earliest.lock().unwrap().insert(way.to_owned(), (self.now)() + DELAY);
        way
    }

    /// Returns a way, `text`, that is called after some work.
    fn note_after_work<'w>(&self, way: &'w str) -> &'w str {
        (self.work)();
        self.note(way)
    }

    fn handle(self: &Arc<Self>, due: &Due<String>) -> Result<Done, Retry> {
        let way = &**due.payload();
        let now = (self.now)();
        let earliest = self.earliest.lock().unwrap()[due.payload()];
        let message = if due.due() < earliest || now < earliest {
            format!("{way} is early: called for {earliest:?}, due {:?}, begun {now:?}", due.due())
        } else {
            way.to_owned()
        };
        self.began.send(message).unwrap();
        let timer = self.timer.get().unwrap().upgrade().unwrap();
        match (way, due.attempt()) {
            ("then", _) => return Ok(Done::then(WAY, Schedule::after(DELAY), self.note_after_work("follow-up"))),
            ("own key", _) => {
                let way = self.note_after_work("next of key");
                timer.schedule(WAY, Schedule::after(DELAY).key(due.key().unwrap()), way).wait().unwrap();
            }
            ("retry", 1) => return Err(Retry::after(DELAY).because(self.note_after_work(way))),
            ("backoff", 1) => return Err(Retry::new(self.note_after_work(way))),
            ("later", 1) => return Err(Later::after(DELAY).because(self.note_after_work(way))),
            ("in transaction", _) => {
                let ledger = self.clone();
                let work = due.complete_with(move |tx| {
                    Ok(tx.new_timeout(WAY, DELAY, ledger.note_after_work("complete_with"))?)
                });
                work.wait().unwrap();
            }
            ("period", 1) => {
                self.earliest.lock().unwrap().insert(way.to_owned(), due.due() + DELAY);
                (self.work)();
                return Ok(Done::new());
            }
            _ => {}
        }
        Ok(Done::new().end_series())
    }

    /// Schedules in each way. Returns how many handlers begin.
    pub fn call(self: &Arc<Self>, timer: &DurableTimer) -> usize {
        self.timer.set(timer.downgrade()).unwrap();
        let keyed = |way: &str, delay| Schedule::after(delay).key(way);
        let schedule = |way: &str, schedule| timer.schedule(WAY, schedule, way).wait().unwrap();
        let in_handlers = ["then", "own key", "retry", "backoff", "later"];
        for way in in_handlers {
            self.note(way);
            schedule(way, keyed(way, DELAY));
        }
        let moves = [
            (IfPending::Replace, LONG, DELAY),
            (IfPending::Earlier, LONG, DELAY),
            // The first one must not be due before the second call, however busy the machine is.
            (IfPending::Later, 100 * DELAY, 101 * DELAY),
            (IfPending::Update, LONG, DELAY),
            (IfPending::Debounce, LONG, DELAY),
        ];
        for (if_pending, before, delay) in moves {
            let way = format!("{if_pending:?}");
            schedule(&way, keyed(&way, before));
            self.earliest.lock().unwrap().insert(way.clone(), (self.now)() + delay);
            schedule(&way, keyed(&way, delay).every(DELAY).if_pending(if_pending));
        }
        self.note("limit");
        schedule("limit", Schedule::debounce(LONG).cap(DELAY).key("limit"));
        for way in ["reset", "reset by id"] {
            let id = schedule(way, keyed(way, LONG)).id();
            self.note(way);
            let reset = if way == "reset" { timer.reset(WAY, way, DELAY) } else { timer.reset_by_id(id, DELAY) };
            reset.wait().unwrap();
        }
        self.note("period");
        schedule("period", keyed("period", DELAY).every(DELAY));
        self.note("many");
        timer.schedule_many([WAY.with(keyed("many", DELAY), "many")]).wait().unwrap();
        self.note("simple");
        timer.new_timeout(WAY, DELAY, "simple").wait().unwrap();
        2 * in_handlers.len() + moves.len() + 7
    }

    /// Schedules in each way of a transaction in the store. Returns how many handlers begin.
    pub fn call_in_transactions(self: &Arc<Self>, timer: &DurableTimer) -> usize {
        let keyed = |way: &str, delay| Schedule::after(delay).key(way);
        for way in ["tx.reset", "tx.update"] {
            timer.schedule(WAY, Schedule::after(LONG).key(way), way).wait().unwrap();
        }
        let ledger = self.clone();
        let work = timer.transaction(move |tx| {
            tx.new_timeout(WAY, DELAY, ledger.note_after_work("tx.new_timeout"))?;
            tx.schedule(WAY, keyed("tx.schedule", DELAY), ledger.note_after_work("tx.schedule"))?;
            let update = keyed("tx.update", LONG).every(DELAY).if_pending(IfPending::Update);
            tx.schedule(WAY, update, ledger.note_after_work("tx.update"))?;
            tx.reset(WAY, ledger.note_after_work("tx.reset"), DELAY)?;
            Ok(())
        });
        work.wait().unwrap();
        timer.new_timeout(WAY, DELAY, self.note("in transaction")).wait().unwrap();
        6
    }
}

/// Checks that as many handlers begin as are expected, none of them early.
pub fn assert_on_time(ways: impl Iterator<Item = String>, expected: usize) {
    let ways: Vec<String> = ways.take(expected).collect();
    let faults: Vec<&String> = ways.iter().filter(|way| way.contains("early")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(ways.len(), expected, "{ways:?}");
}
