//! The lateness of attempts that begin, by cause.
//!
//! In its turns the keeper works and waits for the store and for executors. Between the turns it
//! sleeps. The [`Timeline`] records all of this. A sleep has a cause if no attempt may begin.
//! Otherwise the cause of an attempt that was due during the sleep is known if the timeout was
//! overdue, blocked by its topic, or set aside. If it was none of these, the keeper was woken too
//! late.

use super::super::id_map::IdSet;
use super::super::timeline::Timeline;
use super::Keeper;
use crate::TimeoutId;
use crate::lateness::DurableLateCause::{
    self, Executor, Lease, Paused, Places, PutBack, Rate, Store as AtWork, System,
};
use crate::lateness::DurableLateness;
use crate::store::{Micros, Store};
use crate::transaction::Attempt;

/// The keeper's record of its time.
pub(super) struct Record {
    timeline: Timeline,
    /// The cause of the sleep that is under way.
    asleep: DurableLateCause,
    /// The time at which this instance gained shards, and the timeouts that waited here already.
    gained: Micros,
    known: IdSet,
}

/// The list from which a timeout begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Current,
    Overdue,
    /// The section of a topic that may be blocked.
    Gate,
    Shelf,
    Aside,
}

/// The last pauses of a topic, each from its first time to its end.
#[derive(Default)]
pub(super) struct Pauses(Vec<(Micros, Micros)>);

/// The most pauses of a topic that are kept.
const MAX_PAUSES: usize = 16;

impl Pauses {
    pub(super) fn note(&mut self, is_paused: bool, now: Micros) {
        let Self(pauses) = self;
        match pauses.last_mut().filter(|(_, end)| *end == Micros::MAX) {
            Some(last) if !is_paused => last.1 = now,
            None if is_paused => {
                pauses.push((now, Micros::MAX));
                pauses.drain(..pauses.len().saturating_sub(MAX_PAUSES));
            }
            _ => {}
        }
    }

    /// Returns the end of the last pause.
    pub(super) fn end(&self) -> Micros {
        self.0.last().map_or(Micros::MIN, |(_, end)| *end)
    }
}

impl Record {
    pub(super) fn new(now: Micros) -> Self {
        Self { timeline: Timeline::new(now), asleep: System, gained: Micros::MIN, known: IdSet::default() }
    }
}

impl<S: Store> Keeper<S> {
    /// Notes that the keeper wakes up.
    pub(super) fn note_sleep(&mut self) {
        self.note(self.record.asleep);
    }

    /// Notes the cause of the time since the last note. The keeper's own work counts as [`System`].
    pub(super) fn note(&mut self, cause: DurableLateCause) {
        self.record.timeline.extend(self.store.now(), cause);
    }

    /// Notes that the keeper goes to sleep.
    pub(super) fn note_rest(&mut self) {
        self.note(AtWork);
        let has_failed = self.failures.must_rejoin() || self.failures.paused_until(self.present()).is_some();
        self.record.asleep = match () {
            () if has_failed => AtWork,
            () if !self.store.may_begin() => Lease,
            () if self.lanes.is_full() => Executor,
            () if self.occupied() >= self.settings.max_running => Places,
            () => System,
        };
    }

    /// Notes that the memory is loaded anew, because this instance has gained shards.
    pub(super) fn note_gain(&mut self) {
        let now = self.store.now();
        self.record.gained = now;
        self.overdue.expire(now);
        self.current.expire(now);
        self.record.known = self.overdue.due_ids().chain(self.current.due_ids()).collect();
    }

    /// Splits the lateness of an attempt that begins at `now`.
    pub(super) fn split_lateness(
        &mut self,
        id: TimeoutId,
        attempt: &Attempt,
        source: Source,
        now: Micros,
    ) -> DurableLateness {
        let due = attempt.due.min(now);
        // The delay of a retry has been chosen, so the lateness counts from its end.
        let planned = if attempt.tries() == 1 { attempt.planned.min(due) } else { due };
        let (mut lateness, mut rest) = (DurableLateness::default(), DurableLateness::default());
        lateness.add_micros(PutBack, due.saturating_sub(planned));
        let mut from = due;
        if source != Source::Shelf && due < self.record.gained && !self.record.known.remove(&id) {
            from = self.record.gained.min(now);
            lateness.add_micros(Lease, from.saturating_sub(due));
        }
        let paced = match source {
            Source::Gate | Source::Shelf => self.gates.delay_by_rate(&attempt.topic, from, now),
            Source::Overdue => self.pace.delay(from),
            Source::Current | Source::Aside => from,
        };
        // The keeper may work or sleep while the rate does not let the attempt begin.
        let timeline = &self.record.timeline;
        let mut wait = |from: Micros, until| {
            let paced = paced.clamp(from, until);
            let mut by_rate = timeline.split(from, paced);
            by_rate.reassign(System, Rate);
            by_rate.reassign(AtWork, Rate);
            rest.add_all(&by_rate);
            rest.add_all(&timeline.split(paced, until));
        };
        let (pauses, limit) = self.gates.waits(&attempt.topic);
        let pauses = pauses.filter(|_| matches!(source, Source::Gate | Source::Shelf)).into_iter();
        for (begin, end) in pauses.flat_map(|pauses| &pauses.0) {
            let (begin, end) = ((*begin).clamp(from, now), (*end).clamp(from, now));
            wait(from, begin);
            lateness.add_micros(Paused, end - begin);
            from = end;
        }
        wait(from, now);
        let has_pace = self.settings.overdue_rate.is_some() && self.places_for_overdue() > 0;
        rest.reassign(
            System,
            match source {
                Source::Current => System,
                Source::Overdue => {
                    if has_pace {
                        Rate
                    } else {
                        Places
                    }
                }
                Source::Gate | Source::Shelf => limit,
                Source::Aside => AtWork,
            },
        );
        lateness.add_all(&rest);
        lateness
    }
}
