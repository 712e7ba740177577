//! Calls that are written alone, each as one transaction.
//!
//! A call whose store or timeout is locked waits and is written again, while all others go on. So
//! does a call that was not sent.

use super::super::collect::{Place, Waited, insert};
use super::Keeper;
use super::aside::MAX_LOCKED;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::error::Error;
use crate::lateness::DurableLateCause;
use crate::message::{Answer, Message, Reply};
use crate::new_timeout::NewTimeout;
use crate::store::{Micros, Store, StoreError};
use crate::transaction::Operation;
use crate::work::Work;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// A call that is written alone.
pub(super) enum CallAlone {
    Many(Vec<Operation>, Reply<Vec<ScheduleAnswer>>),
    /// Work of the user, which ends an attempt first if one is given.
    Work(Option<(TimeoutId, u32)>, Work, Reply),
    /// Pauses or resumes a topic.
    Pause(Arc<str>, bool, Reply<()>),
}

impl CallAlone {
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Many(_, reply) => reply.is_abandoned(),
            Self::Work(_, _, reply) => reply.is_abandoned(),
            Self::Pause(_, _, reply) => reply.is_abandoned(),
        }
    }

    /// Returns the time since which the call waits for the store.
    fn waits_since(&self, now: Instant) -> Instant {
        match self {
            Self::Many(_, reply) => reply.waits_since(now),
            Self::Work(_, _, reply) => reply.waits_since(now),
            Self::Pause(_, _, reply) => reply.waits_since(now),
        }
    }

    pub(super) fn many(many: Vec<NewTimeout>, reply: Reply<Vec<ScheduleAnswer>>, now: Micros, instance: u32) -> Self {
        let inserts = many.into_iter().map(|new| Operation::Insert(insert(new, now, instance)));
        Self::Many(inserts.collect(), reply)
    }
}

/// A call that waits for a lock, or until the keeper has joined again.
pub(super) struct LockedCall {
    call: CallAlone,
    waited: Waited,
    next: Instant,
    /// The timeouts about which later calls wait, because the whole store could not be written.
    places: HashSet<Place>,
}

impl<S: Store> Keeper<S> {
    /// Returns the time at which the next call is written again.
    pub(super) fn next_locked(&self) -> Option<Instant> {
        self.locked.iter().map(|call| call.next).min()
    }

    /// Writes again the calls whose pause is over, at least one of them, until the turn is over.
    pub(super) fn write_locked(&mut self, until: Instant) {
        let now = self.present();
        let mut is_over = self.must_rejoin;
        for locked in std::mem::take(&mut self.locked) {
            if locked.next > now || is_over {
                self.locked.push(locked);
            } else {
                self.note(DurableLateCause::System);
                self.write_alone(locked.call, locked.waited);
                self.note(DurableLateCause::Store);
                is_over = self.must_rejoin || self.present() >= until;
            }
        }
    }

    /// Writes a call. If its store or timeout is locked, keeps the call or fails it, depending on
    /// the time that it has `waited`.
    pub(super) fn write_alone(&mut self, call: CallAlone, mut waited: Waited) {
        if call.is_abandoned() {
            return self.fail_alone(call, &StoreError::Busy);
        }
        let Some((call, error)) = self.try_alone(call) else { return };
        if self.has_waited(waited) || self.clock.is_virtual() {
            return self.fail_alone(call, &error);
        }
        let now = self.present();
        let mut next = now;
        let mut places = HashSet::new();
        if let (StoreError::Locked, CallAlone::Many(batch, _)) = (&error, &call) {
            self.note_locks(waited, batch.len());
            let pause = waited.pause.max(self.clock.first_pause());
            waited.pause = self.clock.next_pause(pause, MAX_LOCKED);
            next = now + pause;
        } else {
            if error == StoreError::Busy {
                self.note_store_lock();
            }
            if let CallAlone::Many(batch, _) = &call {
                places.extend(batch.iter().flat_map(Place::of_operation));
            }
        }
        waited.since.get_or_insert_with(|| call.waits_since(now));
        self.locked.push(LockedCall { call, waited, next, places });
    }

    /// Returns the place at which a message has to wait for a call about its timeout.
    pub(super) fn conflict_locked(&self, message: &Message) -> Option<Place> {
        let mut locked = self.locked.iter().filter(|locked| !locked.places.is_empty());
        locked.find_map(|locked| Place::of(message).find(|place| locked.places.contains(place)))
    }

    /// Writes a call and sends the answer. Returns the call with the error if its store or timeout
    /// is locked, or if it was not sent.
    fn try_alone(&mut self, call: CallAlone) -> Option<(CallAlone, StoreError)> {
        if self.is_store_locked {
            return Some((call, StoreError::Busy));
        }
        match call {
            CallAlone::Many(batch, reply) => match self.schedule_many(&batch) {
                Err(Error::Store(error @ (StoreError::Busy | StoreError::Locked | StoreError::Disconnected(_)))) => {
                    return Some((CallAlone::Many(batch, reply), error));
                }
                answers => reply.send(answers),
            },
            CallAlone::Work(attempt, work, reply) => {
                let mut work = Some(work);
                let result = self.transact(attempt, &mut work);
                match (result, work) {
                    (Err(Error::Store(StoreError::Busy)), Some(work)) => {
                        return Some((CallAlone::Work(attempt, work, reply), StoreError::Busy));
                    }
                    (result, _) => reply.send(result.map(|()| Answer::Changed)),
                }
            }
            CallAlone::Pause(topic, is_paused, reply) => match self.set_paused(&topic, is_paused) {
                Err(Error::Store(error @ (StoreError::Busy | StoreError::Disconnected(_)))) => {
                    self.fail(&error);
                    return Some((CallAlone::Pause(topic, is_paused, reply), error));
                }
                result => reply.send(result),
            },
        }
        None
    }

    /// Fails the calls that have waited for too long while the keeper could not join again.
    pub(super) fn fail_locked(&mut self, error: &StoreError) {
        for locked in std::mem::take(&mut self.locked) {
            if !self.may_wait() || self.has_waited(locked.waited) {
                self.fail_alone(locked.call, error);
            } else {
                self.locked.push(locked);
            }
        }
    }

    /// Returns the time since which the first call waits.
    pub(super) fn locked_since(&self) -> Option<Instant> {
        self.locked.iter().filter_map(|call| call.waited.since).min()
    }

    fn fail_alone(&mut self, call: CallAlone, error: &StoreError) {
        match call {
            CallAlone::Many(_, reply) => reply.fail(error),
            CallAlone::Work(attempt, _, reply) => {
                self.fail_work(attempt);
                reply.fail(error);
            }
            CallAlone::Pause(_, _, reply) => reply.fail(error),
        }
    }

    /// Notes that the work that was to end an attempt was not committed. The handler must not end
    /// its timeout without that work.
    pub(super) fn fail_work(&mut self, attempt: Option<(TimeoutId, u32)>) {
        let Some((id, attempt)) = attempt else { return };
        if let Some(running) = self.running.get_mut(&id).filter(|running| running.attempt == attempt) {
            running.work_has_failed = true;
        }
    }
}
