//! The account of a store that several nodes share.
//!
//! The lines of different nodes arrive in any order, so the account checks rules that hold in each
//! order.

use std::collections::HashMap;
use std::fmt;

/// Everything that is known of one key. Each key is scheduled once.
#[derive(Debug, Default)]
struct Life {
    is_scheduled: bool,
    is_cancelled: bool,
    /// A cancel has no answer, or an error. It may have been executed.
    may_be_cancelled: bool,
    /// The attempts that have begun, with the number of the process.
    attempts: Vec<(u64, usize)>,
    ends: usize,
}

/// The totals of an account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) scheduled: usize,
    pub(crate) cancelled: usize,
    pub(crate) done: usize,
    pub(crate) repeated: usize,
    pub(crate) errors: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheduled, cancelled, done, repeated, errors } = self;
        write!(f, "{scheduled} scheduled, {cancelled} cancelled, {done} done, ")?;
        write!(f, "{repeated} attempts after the first, {errors} errors")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    lives: HashMap<String, Life>,
    faults: Vec<String>,
    errors: usize,
}

impl Account {
    pub(crate) fn asks_schedule(&mut self, key: &str) {
        self.lives.insert(key.to_owned(), Life::default());
    }

    pub(crate) fn asks_cancel(&mut self, key: &str) {
        self.lives.entry(key.to_owned()).or_default().may_be_cancelled = true;
    }

    /// Notes a line of the process with this number. Returns `true` if it answers a command.
    pub(crate) fn hears(&mut self, process: usize, line: &str) -> bool {
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default();
        let key = words.next().unwrap_or_default();
        if key.starts_with('s') {
            // The database keeps the account of sessions.
            return false;
        }
        let numbers: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
        let life = self.lives.entry(key.to_owned()).or_default();
        let mut fault = |text: &str| self.faults.push(format!("{text}: {line}, after {life:?}"));
        match (verb, &numbers[..]) {
            ("fired", [attempt, lag]) => {
                if *lag < 0 {
                    fault("early");
                }
                if life.is_cancelled {
                    fault("begun although it was cancelled");
                }
                let attempt = attempt.unsigned_abs();
                if life.attempts.iter().any(|(begun, _)| *begun == attempt) {
                    fault("an attempt runs twice");
                }
                life.attempts.push((attempt, process));
            }
            ("done", [_]) => {
                if life.ends > 0 {
                    fault("a second end");
                }
                life.ends += 1;
            }
            ("scheduled", []) => life.is_scheduled = true,
            ("cancelled", []) => {
                if !life.attempts.is_empty() {
                    fault("cancelled although it has begun");
                }
                life.is_cancelled = true;
            }
            ("running" | "unknown", []) => life.may_be_cancelled = life.is_cancelled,
            ("reset", []) => {}
            ("error", _) => self.errors += 1,
            _ => fault("an unexpected line"),
        }
        !matches!(verb, "fired" | "done")
    }

    /// Returns the number of keys that were accepted and have neither begun nor been cancelled.
    pub(crate) fn missing(&self) -> usize {
        self.lives.values().filter(|life| Self::is_missing(life)).count()
    }

    fn is_missing(life: &Life) -> bool {
        life.is_scheduled && !life.may_be_cancelled && life.attempts.is_empty()
    }

    /// Returns the faults when nothing is pending any more. `healthy` are the processes that were
    /// neither killed nor frozen, have joined once, and whose connections were not cut.
    pub(crate) fn close(&mut self, healthy: &[usize]) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.faults);
        for (key, life) in &self.lives {
            if Self::is_missing(life) {
                faults.push(format!("lost: {key}, {life:?}"));
            }
            // The end of the last attempt is printed unless its process died.
            let last = life.attempts.iter().max();
            if life.ends == 0 && last.is_some_and(|(_, process)| healthy.contains(process)) {
                faults.push(format!("no end: {key}, {life:?}"));
            }
        }
        faults
    }

    pub(crate) fn totals(&self) -> Totals {
        let count = |is: fn(&Life) -> bool| self.lives.values().filter(|life| is(life)).count();
        Totals {
            scheduled: count(|life| life.is_scheduled),
            cancelled: count(|life| life.is_cancelled),
            done: count(|life| life.ends > 0),
            repeated: self.lives.values().map(|life| life.attempts.len().saturating_sub(1)).sum(),
            errors: self.errors,
        }
    }
}
