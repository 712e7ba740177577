//! Random programs on virtual time, with injected faults and crashes, beside a sorted map.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::store::Store;
use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, Fault, FaultPoint, IfPending, ManualDurableDriver, MemoryStore,
    ResetAnswer, Retry, Schedule, ScheduleAnswer, TimeoutId, Topic,
};

use crate::t;

const OTHER: Topic<String> = Topic::new("other");
const CAPACITY: usize = 16;
const RETRY_MS: u64 = 5;

/// The name of a timeout in the map. Keyed ones have their key, the others have their id. With it
/// goes whether it belongs to the other topic.
type Name = (Label, bool);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Key(String),
    Id(TimeoutId),
}

fn topic(is_other: bool) -> Topic<String> {
    if is_other { OTHER } else { t() }
}

/// A pending timeout of the map.
#[derive(Clone, Debug)]
struct Pending {
    due_ms: u64,
    number: u32,
    fails_once: bool,
}

/// A run of a handler, with the time since the start of the store's clock.
type Run = (u64, u32);

struct Program {
    random: fastrand::Rng,
    store: MemoryStore,
    start: i64,
    open: Option<(DurableTimer, ManualDurableDriver)>,
    ran: Arc<Mutex<Vec<(Run, u32)>>>,
    attempts: BTreeMap<u32, u32>,
    pending: BTreeMap<Name, Pending>,
    /// Whether the other topic is paused.
    is_paused: bool,
    now_ms: u64,
    number: u32,
}

impl Program {
    fn new(seed: u64) -> Self {
        let store = MemoryStore::new();
        let mut program = Self {
            random: fastrand::Rng::with_seed(seed),
            start: store.now(),
            store,
            open: None,
            ran: Arc::default(),
            attempts: BTreeMap::new(),
            pending: BTreeMap::new(),
            is_paused: false,
            now_ms: 0,
            number: 0,
        };
        program.reopen();
        program
    }

    fn timer(&self) -> &DurableTimer {
        &self.open.as_ref().unwrap().0
    }

    /// Crashes and starts again.
    fn reopen(&mut self) {
        if let Some((timer, driver)) = self.open.take() {
            driver.crash();
            drop(timer);
        }
        let ran = self.ran.clone();
        let store = self.store.clone();
        let start = self.start;
        let handler = move |due: &Due<String>| {
            let at = u64::try_from((store.now() - start) / 1_000).unwrap();
            let (number, fails_once) = due.payload().split_once(' ').unwrap();
            let mut ran = ran.lock().unwrap();
            let number = number.parse().unwrap();
            let has_run = ran.iter().any(|((_, earlier), _)| *earlier == number);
            ran.push(((at, number), due.attempt()));
            let fails = fails_once == "true" && !has_run;
            if fails { Err(Retry::after(Duration::from_millis(RETRY_MS)).because("once")) } else { Ok(()) }
        };
        let builder = DurableTimer::builder()
            .topic(t(), handler.clone())
            .topic(OTHER, handler)
            .capacity(CAPACITY)
            .max_running(3)
            .max_batch(4);
        self.open = Some(builder.build_manual(self.store.clone()).unwrap());
    }

    /// Repeats a call that changes nothing the second time, until its outcome is known.
    fn repeat_until_known<R>(&self, call: impl Fn(&DurableTimer) -> Result<R, Error>) -> R {
        loop {
            match call(self.timer()) {
                Ok(answer) => return answer,
                Err(Error::Store(_) | Error::OutcomeUnknown { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn step(&mut self) {
        if self.random.u8(..5) == 0 {
            let faults = [Fault::FailBefore, Fault::LoseAnswer, Fault::LoseRequest, Fault::TearAnswer, Fault::Fence];
            let points = [FaultPoint::Write, FaultPoint::Write, FaultPoint::Load];
            let point = *self.random.choice(points.iter()).unwrap();
            self.store.inject_at(point, *self.random.choice(faults.iter()).unwrap());
        }
        match self.random.u8(..20) {
            0..=6 => self.schedule(),
            7..=11 => self.schedule_keyed(),
            12..=13 => self.cancel(),
            14..=15 => self.reset(),
            16 => self.reopen(),
            17 => self.pause(),
            _ => {
                let by = self.random.u64(1..40);
                self.advance(by);
            }
        }
        let counts = self.timer().counts().wait().unwrap();
        assert_eq!(counts.pending, self.pending.len() as u64, "D2");
        assert_eq!(self.timer().stats().pending, Some(counts.pending));
        assert!(self.timer().stats().in_memory <= CAPACITY as u64, "D12");
    }

    fn new_pending(&mut self) -> (Pending, Duration, String) {
        let delay = self.random.u64(1..60);
        self.number += 1;
        let fails_once = self.random.u8(..6) == 0;
        let pending = Pending { due_ms: self.now_ms + delay, number: self.number, fails_once };
        (pending, Duration::from_millis(delay), format!("{} {fails_once}", self.number))
    }

    fn schedule(&mut self) {
        let (pending, delay, payload) = self.new_pending();
        let id = TimeoutId::new();
        let is_other = self.random.bool();
        let schedule = || Schedule::after(delay).id(id);
        let answer = self.repeat_until_known(|timer| timer.schedule(topic(is_other), schedule(), &payload).wait());
        assert_eq!(answer, ScheduleAnswer::Created(id), "D10");
        self.pending.insert((Label::Id(id), is_other), pending);
    }

    /// Pauses the other topic, or resumes it.
    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        let timer = self.timer();
        if self.is_paused {
            timer.pause(OTHER).wait().unwrap();
        } else {
            timer.resume(OTHER).wait().unwrap();
            self.advance(0);
        }
    }

    fn key(&mut self) -> String {
        self.random.u8(..6).to_string()
    }

    fn schedule_keyed(&mut self) {
        let (pending, delay, payload) = self.new_pending();
        let key = self.key();
        let is_other = self.random.bool();
        let rules = [IfPending::Keep, IfPending::Replace, IfPending::Earlier, IfPending::Later, IfPending::Refuse];
        let rule = *self.random.choice(rules.iter()).unwrap();
        let schedule = Schedule::after(delay).key(&key).if_pending(rule);
        let answer = self.timer().schedule(topic(is_other), schedule, &payload);
        let name = (Label::Key(key.clone()), is_other);
        match answer.wait() {
            Ok(_) => match self.pending.get_mut(&name) {
                None => _ = self.pending.insert(name, pending),
                Some(old) => match rule {
                    IfPending::Replace => *old = pending,
                    IfPending::Earlier => old.due_ms = old.due_ms.min(pending.due_ms),
                    IfPending::Later => old.due_ms = old.due_ms.max(pending.due_ms),
                    _ => assert_eq!(rule, IfPending::Keep),
                },
            },
            Err(Error::KeyTaken { .. }) => assert!(rule == IfPending::Refuse && self.pending.contains_key(&name)),
            Err(Error::Store(_)) => {}
            Err(Error::OutcomeUnknown { .. }) => {
                // No timeout has the key afterwards, whatever has happened.
                self.repeat_until_known(|timer| timer.cancel(topic(is_other), &key).wait());
                self.pending.remove(&name);
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn cancel(&mut self) {
        let name = self.any_name();
        let cancel = |timer: &DurableTimer| match &name {
            (Label::Key(key), is_other) => timer.cancel(topic(*is_other), key).wait(),
            (Label::Id(id), _) => timer.cancel_by_id(*id).wait(),
        };
        match cancel(self.timer()) {
            Ok(answer) => {
                let was_pending = self.pending.remove(&name).is_some();
                assert_eq!(answer, if was_pending { CancelAnswer::Cancelled } else { CancelAnswer::Unknown }, "D9");
            }
            Err(Error::Store(_)) => {}
            Err(Error::OutcomeUnknown { .. }) => {
                self.repeat_until_known(cancel);
                self.pending.remove(&name);
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn reset(&mut self) {
        let name = self.any_name();
        let delay = self.random.u64(1..60);
        let answer = self.repeat_until_known(|timer| match &name {
            (Label::Key(key), is_other) => timer.reset(topic(*is_other), key, Duration::from_millis(delay)).wait(),
            (Label::Id(id), _) => timer.reset_by_id(*id, Duration::from_millis(delay)).wait(),
        });
        let due_ms = self.now_ms + delay;
        match self.pending.get_mut(&name) {
            Some(pending) => {
                assert_eq!(answer, ResetAnswer::Reset);
                pending.due_ms = due_ms;
            }
            None => assert_eq!(answer, ResetAnswer::Unknown),
        }
    }

    fn any_name(&mut self) -> Name {
        let known = self.random.usize(..=self.pending.len());
        match self.pending.keys().nth(known) {
            Some(name) => name.clone(),
            None => (Label::Key(self.key()), self.random.bool()),
        }
    }

    /// Lets time pass, and compares the runs of handlers with those of the map.
    fn advance(&mut self, by: u64) {
        let end = self.now_ms + by;
        let first = self.ran.lock().unwrap().len();
        self.open.as_mut().unwrap().1.advance(Duration::from_millis(by));
        let mut ran: Vec<Run> = Vec::new();
        for ((at, number), attempt) in &self.ran.lock().unwrap()[first..] {
            let last = self.attempts.insert(*number, *attempt).unwrap_or(0);
            assert!(*attempt > last, "D3: attempt {attempt} of {number} after {last}");
            ran.push((*at, *number));
        }
        let mut expected = Vec::new();
        let may_run = |name: &Name| !(name.1 && self.is_paused);
        loop {
            let first = self.pending.iter().filter(|(name, _)| may_run(name)).min_by_key(|(_, pending)| pending.due_ms);
            let Some((name, pending)) = first.filter(|(_, pending)| pending.due_ms <= end) else { break };
            let name = name.clone();
            let mut pending = pending.clone();
            // It has waited for the end of a pause.
            let at = pending.due_ms.max(self.now_ms);
            expected.push((at, pending.number));
            self.pending.remove(&name);
            if std::mem::take(&mut pending.fails_once) {
                pending.due_ms = at + RETRY_MS;
                self.pending.insert(name, pending);
            }
        }
        assert!(ran.is_sorted_by_key(|(at, _)| *at), "{ran:?}");
        ran.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ran, expected, "D2, D5 and D6: each runs once, and at its due time");
        self.now_ms = end;
    }
}

/// The optimized tests of `ci --long` have time for more.
const SEEDS: u64 = if cfg!(debug_assertions) { 120 } else { 2_000 };

#[test]
fn random_programs_agree_with_a_sorted_map() {
    for seed in 0..SEEDS {
        let mut program = Program::new(seed);
        let steps = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..150).for_each(|_| program.step())));
        assert!(steps.is_ok(), "seed {seed}");
    }
}
