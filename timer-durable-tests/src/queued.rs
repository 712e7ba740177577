//! Calls of a key while its handler runs.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use timer_durable::store::Store;
use timer_durable::{Due, DurableTimer, IfPending, ManualDurableDriver, Retry, Schedule, ScheduleAnswer, TimeoutState};

use crate::t;

const SESSIONS: usize = 200;
const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(1);
const DEBOUNCE: Duration = Duration::from_millis(300);
/// The steps for which a handler works.
const WORK: u32 = 20;

type Handlers = Arc<Mutex<VecDeque<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// A timer on virtual time whose handlers work until they are told to end.
pub struct Bench {
    pub timer: DurableTimer,
    pub driver: ManualDurableDriver,
    handlers: Handlers,
    /// The keys and the payloads of the handlers that have ended.
    ended: Arc<Mutex<Vec<(String, String)>>>,
}

impl Bench {
    pub fn new(store: impl Store) -> Self {
        let handlers = Handlers::default();
        let ended = Arc::<Mutex<Vec<(String, String)>>>::default();
        let started = handlers.clone();
        let noted = ended.clone();
        let handle = move |due: Due<String>| {
            let noted = noted.clone();
            async move {
                let key = due.key().unwrap_or_default().to_owned();
                noted.lock().unwrap().push((key, due.payload().clone()));
                let fails = due.payload() == "fails" && due.attempt() == 1;
                if fails { Err(Retry::after(10 * SECOND).because("not yet")) } else { Ok(()) }
            }
        };
        let builder = DurableTimer::builder().spawn(move |handler| started.lock().unwrap().push_back(handler));
        let (timer, driver) = builder.topic_async(t(), handle).build_manual(store).unwrap();
        Self { timer, driver, handlers, ended }
    }

    pub fn schedule(&self, schedule: Schedule, payload: &str) -> ScheduleAnswer {
        self.timer.schedule(t(), schedule, payload).wait().unwrap()
    }

    /// Returns the number of handlers that work.
    pub fn working(&self) -> usize {
        self.handlers.lock().unwrap().len()
    }

    /// Lets the first handler end.
    pub fn end_first(&mut self) {
        let mut handler = self.handlers.lock().unwrap().pop_front().expect("a handler works");
        let ended = handler.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(ended, Poll::Ready(()));
        self.driver.run_due();
    }

    /// Returns the payloads of the handlers that have ended since the last call.
    pub fn take_ended(&self) -> Vec<String> {
        std::mem::take(&mut *self.ended.lock().unwrap()).into_iter().map(|(_, payload)| payload).collect()
    }
}

/// Sends random events to 200 sessions, each of which is handled when it has been quiet for a
/// while. Asserts that the last event of each session is handled.
pub fn no_session_loses_its_last_event(store: impl Store) {
    let mut bench = Bench::new(store);
    let mut random = fastrand::Rng::with_seed(3);
    let mut events = vec![0_u32; SESSIONS];
    let mut ends = VecDeque::new();
    let mut queued = 0;
    for step in 0..4_000 {
        for (session, last) in events.iter_mut().enumerate() {
            // The mean distance is that of the debounce, and the last second is quiet.
            if step < 3_000 && random.u32(..300) == 0 {
                *last += 1;
                let schedule = Schedule::debounce(DEBOUNCE).key(session.to_string());
                let answer = bench.schedule(schedule, &last.to_string());
                queued += u32::from(matches!(answer, ScheduleAnswer::Queued(_)));
            }
        }
        bench.driver.advance(STEP);
        ends.extend(std::iter::repeat_n(step + WORK, bench.working() - ends.len()));
        while ends.front().is_some_and(|end| *end <= step) {
            ends.pop_front();
            bench.end_first();
        }
    }
    let ended = bench.ended.lock().unwrap().clone();
    let handled = |session: usize| {
        let last = ended.iter().rev().find(|(key, _)| *key == session.to_string());
        last.map_or(0, |(_, payload)| payload.parse().unwrap())
    };
    let lost = (0..SESSIONS).filter(|session| handled(*session) != events[*session]).count();
    let sent: u32 = events.iter().sum();
    println!("{sent} events, {queued} of them beside a handler, {} handlers, {lost} sessions lost", ended.len());
    assert!(queued > 20, "{queued}");
    assert_eq!(lost, 0, "of {SESSIONS} sessions");
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 0);
}

/// Asserts that each shorter period that a call sets during a run takes effect with the end of the
/// run.
pub fn new_periods_take_effect_during_a_run(store: impl Store) {
    let mut bench = Bench::new(store);
    let update = |period: Duration| Schedule::after(period).every(period).key("report").if_pending(IfPending::Update);
    let first = bench.schedule(update(3600 * SECOND), "0").id();
    bench.driver.advance(3600 * SECOND);
    for n in 1..=20_u32 {
        let period = (3600 - 100 * n) * SECOND;
        let ScheduleAnswer::Queued(id) = bench.schedule(update(period), &n.to_string()) else { panic!("{n}") };
        assert_ne!(id, first);
        bench.end_first();
        bench.driver.advance(period - STEP);
        assert_eq!(bench.working(), 0, "run {n}");
        bench.driver.advance(STEP);
        assert_eq!(bench.working(), 1, "run {n}");
        let running = bench.timer.get(t::<String>(), "report").wait().unwrap().unwrap();
        assert_eq!((running.id, running.payload), (first, n.to_string()));
    }
}

/// Asserts the effects of a call that is made while the handler works.
pub fn a_call_beside_a_handler_is_kept(store: impl Store) {
    let mut bench = Bench::new(store);
    let keyed = |delay: u32, if_pending| Schedule::after(delay * SECOND).key("k").if_pending(if_pending);
    let first = bench.schedule(keyed(1, IfPending::Keep), "fails").id();
    bench.driver.advance(SECOND);
    assert_eq!(bench.schedule(keyed(5, IfPending::Keep), "a"), ScheduleAnswer::Kept(first));
    let queued = bench.schedule(keyed(5, IfPending::Later), "b");
    assert_eq!(queued, ScheduleAnswer::Queued(queued.id()));
    assert_eq!(bench.schedule(keyed(9, IfPending::Debounce), "c"), queued);
    let found = bench.timer.get_by_id(t::<String>(), queued.id()).wait().unwrap().unwrap();
    assert_eq!((found.state, &*found.payload), (TimeoutState::Queued, "c"));
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 2);
    // The attempt is repeated after ten seconds, and the call puts off the repetition.
    bench.driver.advance(5 * SECOND);
    let last = bench.schedule(keyed(15, IfPending::Debounce), "d");
    assert_eq!(last, queued);
    bench.end_first();
    bench.driver.advance(14 * SECOND);
    assert_eq!(bench.working(), 0);
    bench.driver.advance(SECOND);
    let running = bench.timer.get(t::<String>(), "k").wait().unwrap().unwrap();
    assert_eq!((running.id, running.attempt, &*running.payload), (first, 2, "d"));
    // The next call replaces nothing, because the timeout has ended.
    let next = bench.schedule(keyed(3, IfPending::Replace), "e").id();
    bench.end_first();
    bench.driver.advance(3 * SECOND);
    let running = bench.timer.get(t::<String>(), "k").wait().unwrap().unwrap();
    assert_eq!((running.id, running.attempt, &*running.payload), (next, 1, "e"));
    bench.end_first();
    assert_eq!(bench.take_ended(), ["fails", "d", "e"]);
    assert_eq!(bench.timer.counts().wait().unwrap().pending, 0);
}
