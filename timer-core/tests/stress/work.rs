//! The tasks. Each performs one of the operations of the threads.

use crate::callers::Shared;
use crate::ledger::{Capture, Kind, taking_back};
use crate::support::HOUR;
use crate::support::random::{Draw, Rng};
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{Timeout, TimerTask};

/// Delays this thread by `pause`. It does not park, because that would take a wake-up token which
/// belongs to the loop of the thread.
pub(crate) fn hold_up(pause: Duration) {
    let own = Mutex::new(());
    let nothing = Condvar::new();
    let begun = Instant::now();
    let over = |_: &mut ()| begun.elapsed() < pause;
    let held = own.lock().unwrap_or_else(PoisonError::into_inner);
    drop(nothing.wait_timeout_while(held, pause, over));
}

/// The operation of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Nothing,
    Panic,
    /// Takes far longer than the others, on a thread that they may need.
    Slow,
    /// Schedules another timeout.
    Rearm,
    CancelSibling,
    ResetSibling,
    CancelItself,
    ResetItself,
    Stop,
}

impl Act {
    /// The operations, each as likely as the others.
    pub(crate) const DRAWN: [Act; 10] = [
        Act::Nothing,
        Act::Nothing,
        Act::Nothing,
        Act::Panic,
        Act::Rearm,
        Act::Rearm,
        Act::CancelSibling,
        Act::ResetSibling,
        Act::CancelItself,
        Act::ResetItself,
    ];
}

pub(crate) struct Work {
    pub(crate) shared: Arc<Shared>,
    pub(crate) capture: Capture,
    pub(crate) act: Act,
    pub(crate) random: Rng,
    /// The run in which a periodic task cancels itself.
    pub(crate) last: u64,
}

impl Work {
    pub(crate) fn run(&mut self, timeout: &Timeout) {
        let counted = self.capture.begin(timeout, self.shared.now());
        let panics = taking_back(false, || self.act(timeout));
        self.capture.end(panics && counted);
        if panics {
            resume_unwind(Box::new("a task of the test"));
        }
    }

    /// Performs the operation. Returns `true` if the task ends in a panic.
    fn act(&mut self, timeout: &Timeout) -> bool {
        let Self { shared, capture, random, .. } = self;
        let ledger = &*shared.ledger;
        let record = &*capture.record;
        match self.act {
            Act::Nothing => {}
            Act::Panic => return true,
            Act::Slow => hold_up(if random.one_in(16) { random.micros(5_000) } else { random.micros(300) }),
            Act::Rearm => drop(shared.schedule(random, false)),
            Act::CancelSibling => shared.with_sibling(random, |(timeout, record)| ledger.cancel(timeout, record)),
            Act::ResetSibling => {
                let delay = random.micros(500);
                shared.with_sibling(random, |(timeout, record)| ledger.reset(timeout, record, delay));
            }
            Act::CancelItself if record.kind == Kind::Periodic => ledger.cancel(timeout, record),
            Act::CancelItself => ledger.check(!timeout.cancel(), "a task cancelled itself during its run"),
            Act::ResetItself if record.kind == Kind::Periodic => ledger.reset(timeout, record, random.micros(200)),
            Act::ResetItself => ledger.check(!timeout.reset(HOUR), "a task moved itself during its run"),
            Act::Stop => shared.stop(),
        }
        if record.kind == Kind::Periodic && record.runs.load(Ordering::Acquire) >= self.last {
            ledger.cancel(timeout, record);
        }
        false
    }
}

pub(crate) struct Hooked(pub(crate) Work);

impl TimerTask for Hooked {
    fn run(mut self, timeout: &Timeout) {
        self.0.run(timeout);
    }

    fn cancelled(self, timeout: &Timeout) {
        self.0.capture.hook_called(timeout);
        let Work { shared, mut random, act, .. } = self.0;
        if matches!(act, Act::Rearm) {
            taking_back(false, || drop(shared.schedule(&mut random, false)));
        }
    }
}
