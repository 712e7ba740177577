//! The timeouts that begin next, and the reasons why they have waited.

use super::heads::Heads;
use super::places::{Places, Room};
use super::{FIRST_BEGINS, Queue};
use crate::TimeoutId;
use crate::engine::executors::Executors;
use crate::engine::record::Wait;
use crate::engine::unwritten::{Collection, Origin};
use crate::lateness::DurableLateCause;
use crate::store::{Micros, Position};
use crate::transaction::{Attempt, Operation, Outcome};
use std::collections::HashMap;

/// The payload bytes above which the answer to a batch of begins is too long. It must arrive before
/// the store gives up, and the keeper does not know the payloads before.
const MAX_ANSWER: usize = 16 << 20;

/// The list from which a timeout begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Source {
    Current,
    Overdue,
    /// The list of a topic that is limited or was paused.
    Topic,
    Aside,
}

impl Queue {
    /// Returns how many timeouts may begin in one batch.
    pub(crate) fn max_begins(&self) -> usize {
        self.max_begins
    }

    /// Adapts the size of the next batch of begins to the outcomes.
    pub(crate) fn adapt_begins(&mut self, begun: &[(TimeoutId, Outcome)]) {
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
    pub(crate) fn isolate_begins(&mut self) {
        self.max_begins = 1;
    }

    /// Returns the first time at which a timeout in memory may begin. `for_overdue` is the number
    /// of free places for overdue timeouts.
    pub(crate) fn next_due(&self, for_overdue: usize, executors: &Executors, now: Micros) -> Option<Micros> {
        let has_places = for_overdue > 0;
        let overdue = self.overdue.next_due().map(|due| self.pace.next().map_or(due, |next| due.max(next)));
        let ready = [(&self.overdue, true), (&self.current, false)]
            .map(|(heads, is_overdue)| self.next_ready(heads, is_overdue, has_places, executors, now));
        ready.into_iter().flatten().chain(self.current.next_due()).chain(overdue.filter(|_| has_places)).min()
    }

    /// Returns the first time from which a ready timeout of a part of the memory may begin.
    fn next_ready(
        &self,
        heads: &Heads,
        is_overdue: bool,
        has_places: bool,
        executors: &Executors,
        now: Micros,
    ) -> Option<Micros> {
        let pace = self.pace.next().filter(|_| is_overdue).unwrap_or(now);
        let next = |topic| {
            let waits_for_places = (is_overdue || self.topics.is_catching_up(topic)) && !has_places;
            let begins = self.topics.next_begin(topic, executors, now).filter(|_| !waits_for_places);
            begins.map(|begins| begins.max(pace))
        };
        heads.ready_topics().filter_map(next).min()
    }

    /// Adds the timeouts that are due to the batch, as many as there are places.
    pub(crate) fn add_begins(
        &mut self,
        collection: &mut Collection,
        mut places: Places,
        executors: &Executors,
        is_taken: impl Fn(TimeoutId) -> bool,
        now: Micros,
    ) {
        for topic in self.heads().iter().flat_map(|heads| heads.ready_topics()) {
            let left = self.topics.room(topic, executors, now);
            places.add_room(topic, Room { left, is_catching_up: self.topics.is_catching_up(topic) });
        }
        // Overdue timeouts come first, because new ones may occupy all places indefinitely. If
        // there is only one place, both kinds alternate.
        let is_overdue_first = self.settings.max_running > 1 || !self.overdue_began_last;
        for is_overdue in [is_overdue_first, !is_overdue_first] {
            let most = if is_overdue { self.pace.room(now) } else { usize::MAX };
            let added = add_ready(self.part(is_overdue), &is_taken, collection, &mut places, most, is_overdue);
            if added > 0 {
                self.overdue_began_last = is_overdue;
            }
            if is_overdue {
                (0..added).for_each(|_| _ = self.pace.allows(now));
            }
        }
    }

    /// Notes that an attempt has begun. Returns the list from which it began, and whether it counts
    /// as overdue.
    pub(crate) fn begin(
        &mut self,
        id: TimeoutId,
        attempt: &Attempt,
        has_waited_aside: bool,
        now: Micros,
    ) -> (Source, bool) {
        let topic = self.number(&attempt.topic, now);
        let (has_waited, is_catching_up) = self.topics.enter(topic, now);
        let is_overdue = is_catching_up || self.overdue.covers(Position { due: attempt.due, id });
        self.remove(id);
        let source = if has_waited_aside {
            Source::Aside
        } else if has_waited {
            Source::Topic
        } else if is_overdue {
            Source::Overdue
        } else {
            Source::Current
        };
        (source, is_overdue)
    }

    /// Returns `true` if a timeout that waited aside may begin. One that is not in memory waits to
    /// be loaded. `added` counts the begins of the batch by their topics.
    pub(crate) fn admits(
        &self,
        id: TimeoutId,
        added: &mut HashMap<usize, usize>,
        executors: &Executors,
        now: Micros,
    ) -> bool {
        let Some(topic) = self.topic_of(id) else { return false };
        let added = added.entry(topic).or_default();
        *added += 1;
        self.topics.room(topic, executors, now) >= *added
    }

    /// Returns the reasons for which an attempt that has just begun has waited since `from`.
    /// `has_places` tells whether there are places left for overdue timeouts.
    pub(crate) fn wait(
        &mut self,
        source: Source,
        topic: &str,
        from: Micros,
        has_places: bool,
        now: Micros,
    ) -> Wait<'_> {
        let paced = match source {
            Source::Topic => self.topics.delay_by_rate(topic, from, now),
            Source::Overdue => self.pace.delay(from),
            Source::Current | Source::Aside => from,
        };
        let (pauses, limit) = self.topics.waits(topic);
        let has_pace = self.settings.overdue_rate.is_some() && has_places;
        let (pauses, cause) = match source {
            Source::Current => (&[][..], DurableLateCause::System),
            Source::Overdue if has_pace => (&[][..], DurableLateCause::Rate),
            Source::Overdue => (&[][..], DurableLateCause::Places),
            Source::Topic => (pauses, limit),
            Source::Aside => (&[][..], DurableLateCause::Store),
        };
        Wait { paced, pauses, cause }
    }
}

/// Adds up to `most` ready timeouts of a part of the memory to the batch while there are places.
/// Returns the number of them.
fn add_ready(
    heads: &mut Heads,
    is_taken: impl Fn(TimeoutId) -> bool,
    collection: &mut Collection,
    places: &mut Places,
    most: usize,
    is_overdue: bool,
) -> usize {
    let mut added = 0;
    let mut skipped = Vec::new();
    let mut order = heads.ready_order();
    while added < most {
        let next = heads.pop_ready(&mut order, |topic| places.allow(topic, is_overdue));
        let Some((id, topic)) = next else { break };
        if is_taken(id) {
            // Its handler runs here, and the end of the attempt looks at the entry again. Or its
            // begin waits aside.
        } else if collection.has(id) {
            // The batch changes it, so the next turn looks at it again.
            skipped.push(id);
        } else {
            collection.push(Operation::Begin(id), Origin::Begin);
            places.take(topic, is_overdue);
            added += 1;
        }
    }
    for id in skipped {
        heads.push_ready(id);
    }
    added
}
