//! Collecting messages into a batch.

use super::head::IdHasher;
use super::{Answer, Ended, Message, NewTimeout, Reply, Request};
use crate::TimeoutId;
use crate::error::Error;
use crate::store::{Micros, StoreError};
use crate::transaction::{Answers, Batch, Changed, IfPending, Insert, Inserted, Requeue, Reset, Target};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;

/// The part of a batch that a call has become, and the way back to the caller.
pub(super) struct Call {
    part: Part,
    index: usize,
    id: Option<TimeoutId>,
    refuses: bool,
    reply: Reply,
}

#[derive(Clone, Copy)]
enum Part {
    Insert,
    Reset,
    Cancel,
    Requeue,
    Purge,
}

/// A batch that is being collected.
///
/// No id and no key occurs twice in it, because a store may execute all parts at once. A second
/// message about the same timeout waits for the next batch.
#[derive(Default)]
pub(super) struct Collection {
    pub(super) batch: Batch,
    pub(super) calls: Vec<Call>,
    /// The ends in the batch, to be written again if the commit fails.
    pub(super) ends: Vec<Ended>,
    ids: HashSet<TimeoutId, BuildHasherDefault<IdHasher>>,
    keys: HashSet<Target>,
}

impl Collection {
    /// Reserves a timeout for this batch. Returns `false` if it occurs in the batch already.
    pub(super) fn reserve(&mut self, id: TimeoutId) -> bool {
        self.ids.insert(id)
    }

    /// Returns `true` if the message is about a timeout that occurs in the batch already.
    pub(super) fn conflicts(&self, message: &Message) -> bool {
        match message {
            Message::Ended(ended) => self.ids.contains(&ended.id),
            Message::Call(request, _) => match request {
                Request::Insert(new) => {
                    let key = new.key.as_ref().map(|key| key_target(&new.topic, key));
                    new.id.is_some_and(|id| self.ids.contains(&id)) || key.is_some_and(|key| self.keys.contains(&key))
                }
                Request::Reset(target, _) | Request::Cancel(target) => self.has(target),
                Request::Requeue(id) | Request::Purge(id) => self.ids.contains(id),
            },
            _ => false,
        }
    }

    fn has(&self, target: &Target) -> bool {
        match target {
            Target::Id(id) => self.ids.contains(id),
            key @ Target::Key { .. } => self.keys.contains(key),
        }
    }

    fn claim(&mut self, target: &Target) {
        match target {
            Target::Id(id) => _ = self.ids.insert(*id),
            key @ Target::Key { .. } => _ = self.keys.insert(key.clone()),
        }
    }

    /// Adds a call to the batch.
    pub(super) fn add(&mut self, request: Request, reply: Reply, now: Micros, instance: u32) {
        let mut refuses = false;
        let (part, index, id) = match request {
            Request::Insert(new) => {
                refuses = new.if_pending == IfPending::Refuse;
                // No other message can be about an id that is made here.
                if let Some(id) = new.id {
                    self.ids.insert(id);
                }
                let insert = insert(*new, now, instance);
                let id = insert.id;
                if let Some(key) = &insert.key {
                    self.keys.insert(key_target(&insert.topic, key));
                }
                self.batch.inserts.push(insert);
                (Part::Insert, self.batch.inserts.len(), Some(id))
            }
            Request::Reset(target, when) => {
                self.claim(&target);
                self.batch.resets.push(Reset { target, due: when.from(now) });
                (Part::Reset, self.batch.resets.len(), None)
            }
            Request::Cancel(target) => {
                self.claim(&target);
                self.batch.cancels.push(target);
                (Part::Cancel, self.batch.cancels.len(), None)
            }
            Request::Requeue(id) => {
                self.ids.insert(id);
                self.batch.requeues.push(Requeue { id, due: now });
                (Part::Requeue, self.batch.requeues.len(), None)
            }
            Request::Purge(id) => {
                self.ids.insert(id);
                self.batch.purges.push(id);
                (Part::Purge, self.batch.purges.len(), None)
            }
        };
        self.calls.push(Call { part, index: index - 1, id, refuses, reply });
    }
}

impl Collection {
    /// Divides a batch into halves, with the calls and ends that belong to their parts. No two
    /// parts concern the same timeout, so the order of the halves does not matter.
    pub(super) fn split(mut self) -> [Self; 2] {
        let mut room = self.batch.len() / 2;
        let mut second = Self::default();
        let (first, batch) = (&mut self.batch, &mut second.batch);
        let inserts = divide(&mut first.inserts, &mut batch.inserts, &mut room);
        let resets = divide(&mut first.resets, &mut batch.resets, &mut room);
        let cancels = divide(&mut first.cancels, &mut batch.cancels, &mut room);
        divide(&mut first.dones, &mut batch.dones, &mut room);
        divide(&mut first.retries, &mut batch.retries, &mut room);
        divide(&mut first.buries, &mut batch.buries, &mut room);
        let requeues = divide(&mut first.requeues, &mut batch.requeues, &mut room);
        let purges = divide(&mut first.purges, &mut batch.purges, &mut room);
        divide(&mut first.begins, &mut batch.begins, &mut room);
        for mut call in std::mem::take(&mut self.calls) {
            let kept = match call.part {
                Part::Insert => inserts,
                Part::Reset => resets,
                Part::Cancel => cancels,
                Part::Requeue => requeues,
                Part::Purge => purges,
            };
            match call.index.checked_sub(kept) {
                None => self.calls.push(call),
                Some(index) => {
                    call.index = index;
                    second.calls.push(call);
                }
            }
        }
        let ended = self.batch.dones.iter().map(|part| part.id);
        let ended = ended.chain(self.batch.retries.iter().map(|part| part.id));
        let ended: HashSet<_> = ended.chain(self.batch.buries.iter().map(|part| part.id)).collect();
        let (ends, others) = std::mem::take(&mut self.ends).into_iter().partition(|end| ended.contains(&end.id));
        (self.ends, second.ends) = (ends, others);
        [self, second]
    }
}

/// Leaves `room` parts in the first half, and returns how many there are.
fn divide<T>(first: &mut Vec<T>, second: &mut Vec<T>, room: &mut usize) -> usize {
    let kept = first.len().min(*room);
    *room -= kept;
    *second = first.split_off(kept);
    kept
}

fn key_target(topic: &str, key: &str) -> Target {
    Target::Key { topic: topic.to_owned(), key: key.to_owned() }
}

fn insert(new: NewTimeout, now: Micros, instance: u32) -> Insert {
    let id = new.id.unwrap_or_else(|| TimeoutId::made_by(instance));
    Insert {
        key: new.key,
        if_pending: new.if_pending,
        format: new.format,
        payload: new.payload,
        period: new.period,
        max_lateness: new.max_lateness,
        ..Insert::new(id, new.when.from(now), new.topic)
    }
}

impl Call {
    /// Answers the caller after the commit.
    pub(super) fn answer(self, answers: &Answers) {
        let changed = |changed: Changed| match changed {
            Changed::Changed(_) => Answer::Changed,
            Changed::Running => Answer::Running,
            Changed::Unknown => Answer::Unknown,
        };
        let found = |found: bool| if found { Answer::Changed } else { Answer::Unknown };
        let answer = match self.part {
            Part::Insert => match (answers.inserts[self.index], self.id) {
                (Inserted::Created { .. } | Inserted::Exists, Some(id)) => Ok(Answer::Scheduled(id)),
                (Inserted::Kept(id), _) if self.refuses => Err(Error::KeyTaken { id }),
                (Inserted::Kept(id) | Inserted::Moved(id, _), _) => Ok(Answer::Scheduled(id)),
                (Inserted::TooOld, _) => Err(Error::IdTooOld),
                (_, None) => Ok(Answer::Unknown),
            },
            Part::Reset => Ok(changed(answers.resets[self.index])),
            Part::Cancel => Ok(changed(answers.cancels[self.index])),
            Part::Requeue => Ok(found(answers.requeues[self.index])),
            Part::Purge => Ok(found(answers.purges[self.index])),
        };
        let _received = self.reply.send(answer);
    }

    /// Tells the caller that the commit has failed.
    pub(super) fn fail(self, error: &StoreError) {
        let error = match error {
            StoreError::InDoubt(why) => Error::OutcomeUnknown { id: self.id, why: why.clone() },
            error => Error::Store(error.clone()),
        };
        let _received = self.reply.send(Err(error));
    }
}
