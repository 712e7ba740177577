//! Dividing a batch that the store does not accept as a whole.

use super::collect::{Collection, Part};
use crate::TimeoutId;
use crate::transaction::{Answers, Batch, Insert, Inserted, Target};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The time that parts of a batch have spent aside, and the pause before they are written again.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    pub(super) since: Option<Instant>,
    pub(super) pause: Duration,
    /// The time at which a turn first left them to the next one. It is their place in the queue,
    /// which they keep when they are divided.
    pub(super) postponed: Option<Instant>,
}

/// The facts about a part of a batch that a division needs.
pub(super) enum Member<'a> {
    /// A part of a call about this target.
    Call(&'a Target),
    /// A part of a call that inserts a timeout.
    Insert { id: TimeoutId, key: Option<Target> },
    /// A part of a call about this id.
    CallById(TimeoutId),
    /// The end or the begin of an attempt.
    Attempt(TimeoutId),
}

impl Member<'_> {
    pub(super) fn is_call(&self) -> bool {
        !matches!(self, Self::Attempt(_))
    }

    /// Returns `true` if the part is about one of `targets`.
    pub(super) fn is_in(&self, targets: &HashSet<Target>) -> bool {
        match self {
            Self::Call(target) => targets.contains(target),
            Self::Insert { id, key } => {
                targets.contains(&Target::Id(*id)) || key.as_ref().is_some_and(|key| targets.contains(key))
            }
            Self::CallById(id) | Self::Attempt(id) => targets.contains(&Target::Id(*id)),
        }
    }
}

impl Collection {
    /// Divides a batch into halves.
    pub(super) fn split(self) -> [Self; 2] {
        let mut room = self.batch.len() / 2;
        self.divide(|_| {
            let fits = room > 0;
            room = room.saturating_sub(1);
            fits
        })
    }

    /// Divides a batch into the parts for which `is_first` returns `true`, and all others, with the
    /// calls and ends that belong to them. No two parts name the same id or key. A part with a key
    /// and a part with an id may concern the same timeout, and the keeper accepts either order.
    pub(super) fn divide(mut self, mut is_first: impl FnMut(&Member<'_>) -> bool) -> [Self; 2] {
        let mut second = Self::default();
        second.waited = self.waited;
        let (first, batch) = (&mut self.batch, &mut second.batch);
        let places = [
            divide(&mut first.inserts, &mut batch.inserts, |part| {
                let key = part.key.as_ref().map(|key| Target::Key { topic: part.topic.to_string(), key: key.clone() });
                is_first(&Member::Insert { id: part.id, key })
            }),
            divide(&mut first.resets, &mut batch.resets, |part| is_first(&Member::Call(&part.target))),
            divide(&mut first.cancels, &mut batch.cancels, |part| is_first(&Member::Call(part))),
            divide(&mut first.requeues, &mut batch.requeues, |part| is_first(&Member::CallById(part.id))),
            divide(&mut first.purges, &mut batch.purges, |part| is_first(&Member::CallById(*part))),
        ];
        divide(&mut first.dones, &mut batch.dones, |part| is_first(&Member::Attempt(part.id)));
        divide(&mut first.retries, &mut batch.retries, |part| is_first(&Member::Attempt(part.id)));
        divide(&mut first.buries, &mut batch.buries, |part| is_first(&Member::Attempt(part.id)));
        divide(&mut first.begins, &mut batch.begins, |part| is_first(&Member::Attempt(*part)));
        for mut call in std::mem::take(&mut self.calls) {
            let part = match call.part {
                Part::Insert => 0,
                Part::Reset => 1,
                Part::Cancel => 2,
                Part::Requeue => 3,
                Part::Purge => 4,
            };
            let (is_first, index) = places[part][call.index];
            call.index = index;
            if is_first { self.calls.push(call) } else { second.calls.push(call) }
        }
        let ended: HashSet<TimeoutId> = ends(&self.batch).collect();
        let (ends, others) = std::mem::take(&mut self.ends).into_iter().partition(|end| ended.contains(&end.id));
        (self.ends, second.ends) = (ends, others);
        for half in [&mut self, &mut second] {
            half.reserve_parts();
        }
        [self, second]
    }

    /// Divides a batch that was written into the inserts whose answer is [`Inserted::Locked`], and
    /// all other parts. Removes these answers.
    pub(super) fn take_locked(self, answers: &mut Answers) -> [Self; 2] {
        let inserts = self.batch.inserts.iter().zip(&answers.inserts);
        let is_locked = |(insert, answer): (&Insert, &Inserted)| (*answer == Inserted::Locked).then_some(insert.id);
        let locked: HashSet<TimeoutId> = inserts.filter_map(is_locked).collect();
        answers.inserts.retain(|answer| *answer != Inserted::Locked);
        self.divide(|part| matches!(part, Member::Insert { id, .. } if locked.contains(id)))
    }
}

/// Returns the ids of the attempts that a batch ends.
pub(super) fn ends(batch: &Batch) -> impl Iterator<Item = TimeoutId> {
    let dones = batch.dones.iter().map(|part| part.id);
    let retries = batch.retries.iter().map(|part| part.id);
    dones.chain(retries).chain(batch.buries.iter().map(|part| part.id))
}

/// Moves the parts for which `is_first` returns `false` to `second`. Returns for each part whether
/// it is in the first list, and its new index.
fn divide<T>(first: &mut Vec<T>, second: &mut Vec<T>, mut is_first: impl FnMut(&T) -> bool) -> Vec<(bool, usize)> {
    let parts = std::mem::take(first);
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let goes_first = is_first(&part);
        let list = if goes_first { &mut *first } else { &mut *second };
        places.push((goes_first, list.len()));
        list.push(part);
    }
    places
}
