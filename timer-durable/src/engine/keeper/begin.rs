//! Beginning attempts of due timeouts, and handing them to the executor.

use super::super::attempt::{KeeperHandle, Late, Report, Started, TopicSettings};
use super::super::head::Head;
use super::super::unwritten::{Collection, Origin};
use super::late::Source;
use super::places::Places;
use super::{Keeper, Running};
use crate::TimeoutId;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::Retry;
use crate::store::{Micros, Position, Store};
use crate::time::micros;
use crate::transaction::{Attempt, Operation, Outcome};
use std::time::{Duration, Instant};
use timer_executor::Task;

/// The most timeouts that begin in the first batch.
pub(super) const FIRST_BEGINS: usize = 64;

/// The payload bytes above which the answer to a batch of begins is too long. It must arrive before
/// the store gives up, and the keeper does not know the payloads before.
const MAX_ANSWER: usize = 16 << 20;

impl<S: Store> Keeper<S> {
    pub(super) fn may_begin(&self) -> bool {
        let free = self.occupied() < self.settings.max_running && !self.lanes.is_full();
        free && self.stopping.is_none() && self.store.may_begin()
    }

    /// Returns the number of places of handlers that are taken.
    pub(super) fn occupied(&self) -> usize {
        self.running.len() - self.parked
    }

    /// Returns the number of free places for overdue timeouts. They may use half of all places, so
    /// that new ones do not wait for them.
    pub(super) fn places_for_overdue(&self) -> usize {
        (self.settings.max_running / 2).max(1).saturating_sub(self.overdue_running)
    }

    /// Adapts the size of the next batch of begins to the outcomes.
    pub(super) fn adapt_begins(&mut self, begun: &[(TimeoutId, Outcome)]) {
        let payload = |(_, outcome): &(TimeoutId, Outcome)| match outcome {
            Outcome::Begun(attempt) => attempt.payload.len(),
            _ => 0,
        };
        let bytes: usize = begun.iter().map(payload).sum();
        if bytes > MAX_ANSWER {
            self.max_begins = self.max_begins.min(begun.len() / 2).max(1);
        } else if begun.len() >= self.max_begins && bytes <= MAX_ANSWER / 2 {
            self.max_begins = (2 * self.max_begins).min(self.settings.max_running.max(FIRST_BEGINS));
        }
    }

    /// Lets the next begins be written one by one, to find the one that the store cannot write.
    pub(super) fn isolate_begins(&mut self) {
        self.max_begins = 1;
    }

    /// Returns the number of timeouts that may begin in one batch.
    pub(super) fn free_places(&self) -> usize {
        self.settings.max_running.saturating_sub(self.occupied()).min(self.max_begins)
    }

    /// Adds the timeouts that are due, as many as may run. Returns the places that are left.
    pub(super) fn add_begins(&mut self, collection: &mut Collection, now: Micros) -> Places {
        let rooms = self.gates.rooms(&self.lanes, now);
        let mut places = Places::new(self.free_places(), self.places_for_overdue(), rooms);
        let aside = self.unwritten.begins();
        let is_taken = |id: &TimeoutId| self.running.contains_key(id) || aside.contains(id);
        // Overdue timeouts come first, because new ones may occupy all places indefinitely. If
        // there is only one place, both kinds alternate.
        let is_overdue_first = self.settings.max_running > 1 || !self.overdue_began_last;
        let mut last = None;
        for is_overdue in [is_overdue_first, !is_overdue_first] {
            let (head, most) = match is_overdue {
                true => (&mut self.overdue, self.pace.room(now)),
                false => (&mut self.current, usize::MAX),
            };
            let added = add_ready(head, is_taken, collection, &mut places, most, is_overdue);
            if is_overdue {
                (0..added).for_each(|_| _ = self.pace.allows(now));
            }
            if added > 0 {
                last = Some(is_overdue);
            }
        }
        self.overdue_began_last = last.unwrap_or(self.overdue_began_last);
        places
    }

    /// Notes that an attempt has begun. Returns the task that calls its handler with the lane of
    /// its executor, or `None` if the attempt ends without one.
    pub(super) fn start(
        &mut self,
        id: TimeoutId,
        attempt: Attempt,
        has_waited_aside: bool,
        now: Micros,
    ) -> Option<(usize, Task)> {
        let entry = self.gates.enter(id, &attempt.topic, now);
        let is_overdue = entry.is_overdue || self.overdue.covers(Position { due: attempt.due, id });
        self.remove(id);
        self.overdue_running += usize::from(is_overdue);
        let source = match () {
            () if has_waited_aside => Source::Aside,
            () if entry.is_from_shelf => Source::Shelf,
            () if entry.has_gate => Source::Gate,
            () if is_overdue => Source::Overdue,
            () => Source::Current,
        };
        let (lateness, tries) = (self.split_lateness(id, &attempt, source, now), attempt.tries());
        let Attempt { attempt, forgiven, due, planned, topic, key, format, payload, period, max_lateness, traceparent } =
            attempt;
        let lag = Duration::from_micros(u64::try_from(now.saturating_sub(due)).unwrap_or(0));
        self.figures.begin(&topic, lag);
        let known = self.settings.topics.get_key_value(topic.as_str());
        let name = known.map_or_else(|| topic.as_str().into(), |(name, _)| name.clone());
        let keeper = KeeperHandle::new(self.sender.clone(), self.settings.settle.clone());
        let progress = keeper.progress();
        let running = Running {
            attempt,
            instance: self.store.instance(),
            forgiven,
            planned,
            topic: name,
            period,
            is_overdue,
            is_parked: false,
            then: None,
            late: None,
            has_expired: false,
            work_has_failed: false,
            look: None,
            progress,
        };
        self.running.insert(id, running);
        let end = |result| AttemptEnd { id, attempt, result };
        let Some((_, TopicSettings { rules, handler, time_limit, .. })) = known else {
            self.figures.lock().without_handler += 1;
            self.unhandled.note(topic);
            self.unwritten.push_end(end(AttemptResult::NoHandler));
            return None;
        };
        let limit = max_lateness.or_else(|| rules.max_lateness.map(micros));
        // The time for which a run waits for a handler counts as lateness. The delay of a retry
        // does not, because the handler has chosen it.
        let late = now.saturating_sub(if tries == 1 { planned } else { due });
        if limit.is_some_and(|limit| late > limit) {
            if let Some(running) = self.running.get_mut(&id) {
                running.has_expired = true;
            }
            self.figures.record_late(id, (&topic, key.as_deref()), attempt, &lateness);
            self.unwritten.push_end(end(AttemptResult::Expired));
            return None;
        }
        if tries > rules.attempts {
            // The last attempt has reported no end, because its process died.
            let reason = format!("no end after {} attempts", rules.attempts);
            self.unwritten.push_end(end(AttemptResult::Failed(Retry::dead(reason))));
            return None;
        }
        let lane = self.lanes.of(&topic);
        let report = Report::new(&keeper, self.term.clone(), id, attempt);
        let started = Started {
            id,
            topic,
            key,
            traceparent,
            attempt,
            due,
            begun: now,
            keeper,
            late: Late { figures: self.figures.clone(), lateness, since: Instant::now() },
        };
        let (handler, time_limit) = (handler.clone(), *time_limit);
        time_limit.into_iter().for_each(|limit| self.look_after(id, limit, now));
        Some((lane, Task::new(move || handler(started, payload, format, report))))
    }
}

/// Adds up to `most` ready timeouts of a head to the batch while there are places. Returns the
/// number of them.
pub(super) fn add_ready(
    head: &mut Head,
    is_taken: impl Fn(&TimeoutId) -> bool,
    collection: &mut Collection,
    places: &mut Places,
    most: usize,
    is_overdue: bool,
) -> usize {
    let (mut added, mut skipped) = (0, Vec::new());
    while added < most {
        let Some((id, section)) = head.pop_ready(|section| places.allow(section, is_overdue)) else { break };
        if is_taken(&id) {
            // Its handler runs here, and `forget_running` looks at the entry again. Or its begin
            // waits aside.
        } else if collection.has(id) {
            // The batch changes it, so the next turn looks at it again.
            skipped.push(id);
        } else {
            collection.push(Operation::Begin(id), Origin::Begin);
            places.take(section, is_overdue);
            added += 1;
        }
    }
    skipped.into_iter().for_each(|id| head.push_ready(id));
    added
}
