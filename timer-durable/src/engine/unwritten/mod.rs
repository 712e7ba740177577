//! Messages and operations that wait to be written.
//!
//! - Ends of attempts that a failed commit has not written go into the next batch.
//! - A message is *held* while another one about its timeout waits.
//! - Work is *postponed* if the store did not reach it in a turn, if the store could not be
//!   reached, or if another program has locked it. The next turns write it without a pause, the
//!   oldest first. Until then later messages about its timeouts are held, so they keep their order.
//! - Work is *set aside* if the store refuses an end or a begin, or if another transaction has
//!   locked its timeout. It is written again without all others, after pauses that grow. Later
//!   messages do not wait for it.
//! - Old dead letters are deleted at the times of the *retention*.
//!
//! Work is a batch, or a call that is written alone. A call waits for at most [`MAX_WAIT`] and then
//! fails.

mod collection;
mod held;
mod retention;
mod subject;

pub(super) use collection::{Collection, Origin};
pub(crate) use collection::{answer_of, insert};
pub(super) use retention::Retention;
pub(super) use subject::Subject;

use super::failures::PauseClock;
use super::settings::Settings;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::message::{AttemptEnd, Message, Reply};
use crate::schedule::CheckedTimeout;
use crate::store::{Micros, StoreError};
use crate::transaction::Operation;
use crate::work;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time for which a call waits for a timeout that another transaction has locked, for the store
/// that another program has locked, or until the keeper has joined the store again.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(5);

/// A call that is written alone.
pub(super) enum LoneCall {
    Many(Vec<Operation>, Reply<Vec<ScheduleAnswer>>),
    /// Work of the user, which ends an attempt first if one is given.
    Work(Option<(TimeoutId, u32)>, work::Work, Reply),
    /// Pauses or resumes a topic.
    Pause(Arc<str>, bool, Reply<()>),
}

impl LoneCall {
    pub(super) fn many(
        many: Vec<CheckedTimeout>,
        reply: Reply<Vec<ScheduleAnswer>>,
        now: Micros,
        instance: u32,
    ) -> Self {
        let inserts = many.into_iter().map(|new| Operation::Insert(insert(new, now, instance)));
        Self::Many(inserts.collect(), reply)
    }

    /// Returns the time since which the call waits for the store.
    pub(super) fn waits_since(&self, now: Instant) -> Instant {
        match self {
            Self::Many(_, reply) => reply.waits_since(now),
            Self::Work(_, _, reply) => reply.waits_since(now),
            Self::Pause(_, _, reply) => reply.waits_since(now),
        }
    }

    /// Returns the attempt that the call ends.
    pub(super) fn attempt(&self) -> Option<(TimeoutId, u32)> {
        if let Self::Work(attempt, ..) = self { *attempt } else { None }
    }

    /// Returns the number of timeouts that the call creates.
    pub(super) fn len(&self) -> usize {
        if let Self::Many(batch, _) = self { batch.len() } else { 0 }
    }

    pub(super) fn fail(self, error: &StoreError) {
        match self {
            Self::Many(_, reply) => reply.fail(error),
            Self::Work(_, _, reply) => reply.fail(error),
            Self::Pause(_, _, reply) => reply.fail(error),
        }
    }
}

pub(super) enum Work {
    Batch(Collection),
    Call(LoneCall),
}

/// The time that work has waited.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    /// The pause before it is written again the next time, or zero if it was never set aside.
    pause: Duration,
    /// The time at which it was first postponed, which is its place in the queue.
    postponed: Option<Instant>,
}

impl Waited {
    /// Returns `true` if the work was never set aside.
    pub(super) fn is_first(self) -> bool {
        self.pause.is_zero()
    }
}

/// Work that is written at a later time.
pub(super) struct Waiting {
    pub(super) work: Work,
    pub(super) waited: Waited,
    next: Instant,
    /// Whether the work is postponed. Later messages about its timeouts wait until it is written.
    is_postponed: bool,
    /// The subjects of a call that is postponed.
    subjects: HashSet<Subject>,
}

impl Waiting {
    fn calls_wait_since(&self, now: Instant) -> Option<Instant> {
        match &self.work {
            Work::Batch(collection) => collection.calls_wait_since(now),
            Work::Call(call) => Some(call.waits_since(now)),
        }
    }

    fn conflict(&self, message: &Message) -> Option<Subject> {
        match &self.work {
            Work::Batch(collection) => collection.conflict(message),
            Work::Call(_) => Subject::of(message).find(|subject| self.subjects.contains(subject)),
        }
    }
}

/// Everything that waits to be written.
pub(super) struct Unwritten {
    clock: PauseClock,
    ends: Vec<AttemptEnd>,
    held: HashMap<Subject, VecDeque<Message>>,
    /// The subjects of the messages that are held, in the order of their turns.
    order: VecDeque<Subject>,
    work: Vec<Waiting>,
    retention: Retention,
}

impl Unwritten {
    pub(super) fn new(clock: PauseClock, settings: &Settings) -> Self {
        Self {
            clock,
            ends: Vec::new(),
            held: HashMap::new(),
            order: VecDeque::new(),
            work: Vec::new(),
            retention: Retention::new(settings),
        }
    }

    /// Returns the times at which old dead letters are deleted.
    pub(super) fn retention(&self) -> &Retention {
        &self.retention
    }

    pub(super) fn retention_mut(&mut self) -> &mut Retention {
        &mut self.retention
    }

    /// Returns `true` if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.is_quiet() && self.work.is_empty()
    }

    /// Returns `true` if the next turn has no end and no message to write.
    pub(super) fn is_quiet(&self) -> bool {
        self.ends.is_empty() && self.order.is_empty()
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

    /// Leaves work to the next turn.
    pub(super) fn postpone(&mut self, work: Work, mut waited: Waited, now: Instant) {
        let next = *waited.postponed.get_or_insert(now);
        let subjects = match &work {
            Work::Call(LoneCall::Many(batch, _)) => batch.iter().flat_map(Subject::of_operation).collect(),
            // A handler that does not wait for its work may end before it is done.
            Work::Call(LoneCall::Work(Some((id, _)), ..)) => HashSet::from([Subject::Id(*id)]),
            _ => HashSet::new(),
        };
        self.work.push(Waiting { work, waited, next, is_postponed: true, subjects });
    }

    /// Postpones calls that were not sent. They join a batch that waits, so that one transaction
    /// writes them.
    pub(super) fn postpone_calls(&mut self, calls: Collection, waited: Waited, max_batch: usize, now: Instant) {
        let last = self.work.iter_mut().rev().find(|waiting| waiting.is_postponed && waiting.waited.is_first());
        let calls = match last.map(|waiting| &mut waiting.work) {
            Some(Work::Batch(last)) if waited.is_first() => last.absorb(calls, max_batch),
            _ => Some(calls),
        };
        if let Some(calls) = calls.filter(|calls| !calls.is_empty()) {
            self.postpone(Work::Batch(calls), waited, now);
        }
    }

    /// Sets work aside for a pause that grows up to `max`.
    pub(super) fn set_aside(&mut self, work: Work, waited: Waited, max: Duration, now: Instant) {
        let pause = waited.pause.max(self.clock.first_pause());
        let waited = Waited { pause: self.clock.next_pause(pause, max), postponed: None };
        self.work.push(Waiting { work, waited, next: now + pause, is_postponed: false, subjects: HashSet::new() });
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
        for message in self.take_late(now, limit) {
            if let Some(error) = error {
                message.fail(error);
            }
        }
        let mut attempts = Vec::new();
        for waiting in std::mem::take(&mut self.work) {
            let work = match waiting.work {
                Work::Call(call) if now >= call.waits_since(now) + limit => {
                    attempts.extend(call.attempt());
                    if let Some(error) = error {
                        call.fail(error);
                    }
                    continue;
                }
                Work::Batch(collection) => Work::Batch(collection.fail_calls(now, limit, error)),
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
