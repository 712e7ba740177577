//! What the tasks of a storm do: the same as its threads, each one thing.

use crate::capture::{Capture, apart};
use crate::ledger::Kind;
use crate::storm::{FAR, Storm};
use crate::support::random::{Draw, Rng};
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{Timeout, TimerTask};

/// Holds this thread up for so long. Not by a park: that would take the token which is meant for
/// the loop of the thread.
pub(crate) fn hold_up(pause: Duration) {
    let (own, nothing) = (Mutex::new(()), Condvar::new());
    let begun = Instant::now();
    let over = |_: &mut ()| begun.elapsed() < pause;
    let held = own.lock().unwrap_or_else(PoisonError::into_inner);
    drop(nothing.wait_timeout_while(held, pause, over));
}

/// What a task does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Nothing,
    Panic,
    /// Takes far longer than the others, on a thread that they may need.
    Slow,
    /// Schedules another.
    Rearm,
    CancelSibling,
    ResetSibling,
    CancelItself,
    ResetItself,
    Stop,
}

impl Act {
    /// Each as likely as the others.
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
    pub(crate) storm: Arc<Storm>,
    pub(crate) capture: Capture,
    pub(crate) act: Act,
    pub(crate) random: Rng,
    /// The run in which a periodic one cancels itself.
    pub(crate) last: u64,
}

impl Work {
    pub(crate) fn run(&mut self, timeout: &Timeout) {
        let counted = self.capture.begin(timeout);
        let panics = apart(|| self.act(timeout));
        self.capture.end(panics && counted);
        if panics {
            resume_unwind(Box::new("a task of the storm"));
        }
    }

    /// Whether it ends in a panic.
    fn act(&mut self, timeout: &Timeout) -> bool {
        let Self { storm, capture, random, .. } = self;
        let (ledger, record) = (&*storm.ledger, &*capture.record);
        match self.act {
            Act::Nothing => {}
            Act::Panic => return true,
            Act::Slow => hold_up(if random.one_in(16) { random.micros(5_000) } else { random.micros(300) }),
            Act::Rearm => storm.rearm(random),
            Act::CancelSibling => storm.with_sibling(random, |(timeout, record)| {
                ledger.cancel(timeout, record);
            }),
            Act::ResetSibling => {
                let delay = random.micros(500);
                storm.with_sibling(random, |(timeout, record)| ledger.reset(timeout, record, delay));
            }
            Act::CancelItself if record.kind == Kind::Periodic => {
                ledger.cancel(timeout, record);
            }
            Act::CancelItself => ledger.check(!timeout.cancel(), "a task was cancelled by itself"),
            Act::ResetItself if record.kind == Kind::Periodic => ledger.reset(timeout, record, random.micros(200)),
            Act::ResetItself => ledger.check(!timeout.reset(FAR), "a task was moved by itself"),
            Act::Stop => storm.stop(),
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
        self.0.capture.told(timeout);
        let Work { storm, mut random, act, .. } = self.0;
        if matches!(act, Act::Rearm) {
            apart(|| storm.rearm(&mut random));
        }
    }
}
