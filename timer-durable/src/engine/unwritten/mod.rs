//! Messages and operations that wait to be written.
//!
//! - Ends of attempts that a failed commit has not written go into the next batch.
//! - A message is *held* while another one about its timeout waits.
//! - Work is *postponed* if a turn was over, if the store could not be reached, or if another
//!   program has locked it. The next turns write it without a pause, the oldest first. Until then
//!   later messages about its timeouts are held, so they keep their order.
//! - Work is *set aside* if the store refuses an end or a begin, or if another transaction has
//!   locked its timeout. It is written again without all others, after pauses that grow. Later
//!   messages do not wait for it.
//!
//! Work is a batch, or a call that is written alone. A call waits for at most [`MAX_WAIT`] and then
//! fails.

mod collection;
mod held;
mod lone_call;

pub(super) use collection::{Collection, Origin, Waited};
pub(crate) use collection::{answer_of, insert};
pub(super) use held::Subject;
pub(super) use lone_call::LoneCall;

use super::pauses::PauseClock;
use crate::TimeoutId;
use crate::message::{AttemptEnd, Message};
use crate::store::StoreError;
use crate::transaction::Operation;
use held::Held;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The time for which a call waits for a timeout that another transaction has locked, for the store
/// that another program has locked, or until the keeper has joined the store again.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(5);

/// A batch, or a call that is written alone with the pauses that it has spent aside.
pub(super) enum Work {
    Batch(Collection),
    Call(LoneCall, Waited),
}

impl Work {
    fn waited(&mut self) -> &mut Waited {
        match self {
            Self::Batch(collection) => &mut collection.waited,
            Self::Call(_, waited) => waited,
        }
    }
}

/// Work that is written at a later time.
pub(super) struct Waiting {
    pub(super) work: Work,
    next: Instant,
    /// Whether the work is postponed. Later messages about its timeouts wait until it is written.
    is_postponed: bool,
}

impl Waiting {
    fn calls_wait_since(&self, now: Instant) -> Option<Instant> {
        match &self.work {
            Work::Batch(collection) => collection.calls_wait_since(now),
            Work::Call(call, _) => Some(call.waits_since(now)),
        }
    }

    fn conflict(&self, message: &Message) -> Option<Subject> {
        match &self.work {
            Work::Batch(collection) => collection.conflict(message),
            Work::Call(call, _) => call.conflict(message),
        }
    }
}

/// Everything that waits to be written.
pub(super) struct Unwritten {
    clock: PauseClock,
    ends: Vec<AttemptEnd>,
    held: Held,
    work: Vec<Waiting>,
}

impl Unwritten {
    pub(super) fn new(clock: PauseClock) -> Self {
        Self { clock, ends: Vec::new(), held: Held::default(), work: Vec::new() }
    }

    /// Returns `true` if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.is_quiet() && self.work.is_empty()
    }

    /// Returns `true` if the next turn has no end and no message to write.
    pub(super) fn is_quiet(&self) -> bool {
        self.ends.is_empty() && self.held.is_empty()
    }

    /// Returns the time at which the next work is written.
    pub(super) fn next(&self) -> Option<Instant> {
        self.work.iter().map(|waiting| waiting.next).min()
    }

    /// Keeps the end of an attempt for the next batch.
    pub(super) fn push_end(&mut self, ended: AttemptEnd) {
        self.ends.push(ended);
    }

    pub(super) fn take_ends(&mut self) -> Vec<AttemptEnd> {
        std::mem::take(&mut self.ends)
    }

    /// Returns the subject for which a message has to wait, because postponed work is about it.
    pub(super) fn conflict(&self, message: &Message) -> Option<Subject> {
        self.work.iter().filter(|waiting| waiting.is_postponed).find_map(|waiting| waiting.conflict(message))
    }

    /// Returns the subject for which earlier messages are held.
    pub(super) fn held_before(&self, message: &Message) -> Option<Subject> {
        self.held.conflict(message)
    }

    /// Holds a message behind those about the same subject.
    pub(super) fn hold(&mut self, subject: Subject, message: Message, now: Instant) {
        let _since = message.waits_since(now);
        self.held.push(subject, message);
    }

    /// Returns the number of subjects for which messages are held.
    pub(super) fn held_subjects(&self) -> usize {
        self.held.subjects()
    }

    /// Removes the first held message of the subject whose turn it is.
    pub(super) fn pop_held(&mut self) -> Option<(Subject, Message)> {
        self.held.pop()
    }

    /// Puts back a message that was popped.
    pub(super) fn put_back(&mut self, subject: Subject, message: Message) {
        self.held.put_back(subject, message);
    }

    /// Leaves work to the next turn.
    pub(super) fn postpone(&mut self, mut work: Work, now: Instant) {
        let next = *work.waited().postponed.get_or_insert(now);
        self.work.push(Waiting { work, next, is_postponed: true });
    }

    /// Postpones calls that were not sent. They join a batch that waits, so that one transaction
    /// writes them.
    pub(super) fn postpone_calls(&mut self, calls: Collection, max_batch: usize, now: Instant) {
        let last = self.work.iter_mut().rev().find(|waiting| waiting.is_postponed);
        let calls = match last.map(|waiting| &mut waiting.work) {
            Some(Work::Batch(last)) if calls.waited.is_first() && last.waited.is_first() => {
                last.absorb(calls, max_batch)
            }
            _ => Some(calls),
        };
        if let Some(calls) = calls.filter(|calls| !calls.is_empty()) {
            self.postpone(Work::Batch(calls), now);
        }
    }

    /// Sets work aside for a pause that grows up to `max`.
    pub(super) fn set_aside(&mut self, mut work: Work, max: Duration, now: Instant) {
        let waited = work.waited();
        let pause = waited.pause.max(self.clock.first_pause());
        waited.pause = self.clock.next_pause(pause, max);
        waited.postponed = None;
        self.work.push(Waiting { work, next: now + pause, is_postponed: false });
    }

    /// Removes the work whose pause is over. The work that has waited the longest comes first, so
    /// that each is reached.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Waiting> {
        let (mut due, later): (Vec<Waiting>, _) =
            std::mem::take(&mut self.work).into_iter().partition(|waiting| waiting.next <= now);
        self.work = later;
        due.sort_by_key(|waiting| waiting.next);
        due
    }

    /// Puts back work that the turn does not reach.
    pub(super) fn leave(&mut self, waiting: Waiting) {
        self.work.push(waiting);
    }

    /// Fails the calls that have waited for `limit`. Without an error, their callers find the timer
    /// stopped. Returns the attempts that these calls were to end.
    pub(super) fn fail_late(
        &mut self,
        now: Instant,
        limit: Duration,
        error: Option<&StoreError>,
    ) -> Vec<(TimeoutId, u32)> {
        for message in self.held.take_late(now, limit) {
            if let Some(error) = error {
                message.fail(error);
            }
        }
        let mut attempts = Vec::new();
        for waiting in std::mem::take(&mut self.work) {
            let work = match waiting.work {
                Work::Call(call, _) if now >= call.waits_since(now) + limit => {
                    attempts.extend(call.attempt());
                    if let Some(error) = error {
                        call.fail(error);
                    }
                    continue;
                }
                Work::Batch(collection) => Work::Batch(collection.fail_late_calls(now, limit, error)),
                work @ Work::Call(..) => work,
            };
            if !matches!(&work, Work::Batch(collection) if collection.is_empty()) {
                self.work.push(Waiting { work, ..waiting });
            }
        }
        attempts
    }

    /// Returns the time at which the first call fails that waits for the store.
    pub(super) fn next_failure(&self, now: Instant) -> Option<Instant> {
        let first = self.work.iter().filter_map(|waiting| waiting.calls_wait_since(now)).min()?;
        Some(first + MAX_WAIT)
    }

    /// Returns the timeouts whose begins wait.
    pub(super) fn begins(&self) -> HashSet<TimeoutId> {
        let batches = self.work.iter().filter_map(|waiting| match &waiting.work {
            Work::Batch(collection) => Some(&collection.batch),
            Work::Call(..) => None,
        });
        let begin = |operation: &Operation| if let Operation::Begin(id) = operation { Some(*id) } else { None };
        batches.flatten().filter_map(begin).collect()
    }
}
