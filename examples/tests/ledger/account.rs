//! The account of one store, which holds the commands, the answers, and the checks on both.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

/// A handler that takes at least this long was certainly running when its child was killed, if its
/// `fired` line arrived less than a quarter of this time before the kill.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// The state of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Call {
    #[default]
    None,
    /// The command was sent. If the child dies before it answers, the outcome is unknown.
    Asked,
    Answered,
}

/// Everything that is known of one key. Each key is scheduled once.
#[derive(Debug, Default)]
struct Life {
    schedule: Call,
    cancel: Call,
    /// A cancel or a reset is under way.
    is_busy: bool,
    last_attempt: u64,
    fired_at: Option<Instant>,
    is_done: bool,
    /// The child died after the attempt had begun, and the end may have been durable by then.
    may_be_done: bool,
}

/// The totals of an account.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) scheduled: usize,
    pub(crate) cancelled: usize,
    pub(crate) done: usize,
    pub(crate) perhaps_done: usize,
    pub(crate) repeated: usize,
    pub(crate) errors: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheduled, cancelled, done, perhaps_done, repeated, errors } = self;
        write!(f, "{scheduled} scheduled, {cancelled} cancelled, {done} done, {perhaps_done} perhaps done, ")?;
        write!(f, "{repeated} attempts after the first, {errors} errors")
    }
}

/// An account. It collects faults as sentences.
#[derive(Debug, Default)]
pub(crate) struct Account {
    lives: HashMap<String, Life>,
    pub(crate) faults: Vec<String>,
    repeated: usize,
    errors: usize,
}

impl Account {
    pub(crate) fn asks_schedule(&mut self, key: &str) {
        let life = Life { schedule: Call::Asked, ..Life::default() };
        let old = self.lives.insert(key.to_owned(), life);
        assert!(old.is_none(), "{key} is scheduled twice");
    }

    /// Notes that a cancel is sent. Returns `false` if another command for the key is under way.
    pub(crate) fn asks_cancel(&mut self, key: &str) -> bool {
        self.asks(key, |life| life.cancel = Call::Asked)
    }

    /// Notes that a reset is sent. Returns `false` if another command for the key is under way.
    pub(crate) fn asks_reset(&mut self, key: &str) -> bool {
        self.asks(key, |_| ())
    }

    fn asks(&mut self, key: &str, note: impl FnOnce(&mut Life)) -> bool {
        let free = self.lives.get_mut(key).filter(|life| !life.is_busy && life.schedule == Call::Answered);
        free.is_some_and(|life| {
            life.is_busy = true;
            note(life);
            true
        })
    }

    /// Notes a line of the child. Returns `true` if it is the answer of a command.
    pub(crate) fn hears(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default();
        let key = words.next().unwrap_or_default();
        let numbers: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
        let Some(life) = self.lives.get_mut(key) else {
            self.faults.push(format!("an unknown key: {line}"));
            return false;
        };
        let mut faults = Vec::new();
        let mut finish = |fault: &str| faults.push(format!("{fault}: {line}, after {life:?}"));
        match (verb, &numbers[..]) {
            ("fired", [attempt, lag]) => {
                let attempt = u64::try_from(*attempt).unwrap_or_default();
                if attempt <= life.last_attempt {
                    finish("an attempt runs twice or out of order");
                }
                if *lag < 0 {
                    finish("early");
                }
                if life.cancel == Call::Answered {
                    finish("begun after a cancel");
                }
                if life.is_done {
                    finish("begun after its end");
                }
                self.repeated += usize::from(life.last_attempt > 0);
                life.last_attempt = attempt;
                life.fired_at = Some(Instant::now());
                life.may_be_done = false;
            }
            ("done", [attempt]) => {
                if u64::try_from(*attempt).ok() != Some(life.last_attempt) {
                    finish("the end of an attempt that is not the last");
                }
                life.is_done = true;
                life.fired_at = None;
            }
            ("scheduled", []) if life.schedule == Call::Asked => life.schedule = Call::Answered,
            ("cancelled", []) if life.cancel == Call::Asked => {
                if life.is_done {
                    finish("cancelled after its end");
                }
                life.cancel = Call::Answered;
                life.is_busy = false;
            }
            ("unknown", []) => {
                if !life.is_done && life.cancel != Call::Answered && life.last_attempt == 0 {
                    finish("unknown although it has not ended");
                }
                life.cancel = Call::None;
                life.is_busy = false;
            }
            ("running" | "reset", []) => {
                life.cancel = Call::None;
                life.is_busy = false;
            }
            ("error", _) => {
                self.errors += 1;
                life.is_busy = false;
            }
            _ => finish("an unexpected line"),
        }
        self.faults.append(&mut faults);
        matches!(verb, "scheduled" | "cancelled" | "unknown" | "running" | "reset" | "error")
    }

    /// Notes that the child, whose handlers take `handler` each, was killed at `killed`. Commands
    /// that it has not answered stay unknown.
    pub(crate) fn child_died(&mut self, killed: Instant, handler: Duration) {
        for life in self.lives.values_mut() {
            life.is_busy = false;
            if let Some(fired) = life.fired_at.take() {
                let ran = handler >= SLOW && killed.saturating_duration_since(fired) < SLOW / 4;
                life.may_be_done = !ran;
            }
        }
    }

    /// Returns the keys of timeouts that were accepted and have to end.
    pub(crate) fn open(&self) -> Vec<&str> {
        let is_open = |life: &Life| {
            let accepted = life.schedule == Call::Answered || life.last_attempt > 0;
            // A cancel whose answer is missing may have been executed.
            accepted && !life.is_done && !life.may_be_done && life.cancel == Call::None
        };
        self.lives.iter().filter(|(_, life)| is_open(life)).map(|(key, _)| key.as_str()).collect()
    }

    pub(crate) fn totals(&self) -> Totals {
        let count = |is: fn(&Life) -> bool| self.lives.values().filter(|life| is(life)).count();
        Totals {
            scheduled: count(|life| life.schedule == Call::Answered),
            cancelled: count(|life| life.cancel == Call::Answered),
            done: count(|life| life.is_done),
            perhaps_done: count(|life| life.may_be_done),
            repeated: self.repeated,
            errors: self.errors,
        }
    }
}
