//! The record of a keeper, that is, its figures and the causes of its lateness.
//!
//! In its turns the keeper works and waits for the store and for executors. Between the turns it
//! sleeps. The [`Timeline`] records all of this. A sleep has a cause if no attempt may begin.
//! Otherwise the cause of an attempt that was due during the sleep is known if the timeout was
//! overdue, blocked by its topic, or set aside. If it was none of these, the keeper was woken too
//! late.

use super::id_map::IdSet;
use super::timeline::Timeline;
use crate::TimeoutId;
use crate::figures::Figures;
use crate::lateness::DurableLateCause::{self, Lease, PutBack, Quota, Rate, Store, System};
use crate::lateness::DurableLateness;
use crate::store::Micros;
use crate::time::between;
use crate::transaction::Attempt;
use std::collections::HashMap;
use std::sync::Arc;
use timer_core::lateness::QuotaWatch;

/// The time between two reports of a topic without a handler.
const REPORT_PAUSE: Micros = 60_000_000;

/// The time between two looks. If a timeout was too young for the first one, the time is shorter,
/// but at least [`MIN_LOOK_PAUSE`].
const LOOK_PAUSE: Micros = 1_000_000;
const MIN_LOOK_PAUSE: Micros = LOOK_PAUSE / 2;

/// The age from which the keeper looks.
const MIN_AGE: Micros = 1_000_000;

/// The record of a keeper.
pub(super) struct Record {
    figures: Arc<Figures>,
    timeline: Timeline,
    /// The cause of the sleep that is under way.
    asleep: DurableLateCause,
    /// The time at which this instance gained shards, and the timeouts that waited here already.
    gained: Micros,
    known: IdSet,
    /// The time of the next look at the oldest timeouts.
    next_look: Micros,
    /// Whether a turn came after the last look.
    is_stale: bool,
    /// Whether the last look has found a timeout.
    has_found: bool,
    /// The number of timeouts of each topic without a handler here since its last report, and the
    /// time of the next one.
    unhandled: HashMap<String, (u64, Micros)>,
}

/// The reasons for which an attempt has waited after its due time.
pub(super) struct Wait<'q> {
    /// The time up to which a rate alone has delayed the attempt.
    pub(super) paced: Micros,
    /// The pauses of its topic, in order.
    pub(super) pauses: &'q [(Micros, Micros)],
    /// The cause of the time in which the keeper slept.
    pub(super) cause: DurableLateCause,
}

impl Record {
    pub(super) fn new(figures: Arc<Figures>, now: Micros, quota: QuotaWatch) -> Self {
        Self {
            figures,
            timeline: Timeline::new(now, quota),
            asleep: System,
            gained: Micros::MIN,
            known: IdSet::default(),
            next_look: Micros::MIN,
            is_stale: false,
            has_found: false,
            unhandled: HashMap::new(),
        }
    }

    pub(super) fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// Notes the cause of the time since the last note. The keeper's own work counts as [`System`].
    pub(super) fn note(&mut self, cause: DurableLateCause, now: Micros) {
        self.timeline.extend(now, cause);
    }

    /// Notes that the keeper wakes up.
    pub(super) fn wake(&mut self, now: Micros) {
        self.timeline.extend(now, self.asleep);
    }

    /// Notes that the keeper goes to sleep, and the cause of the sleep.
    pub(super) fn rest(&mut self, cause: DurableLateCause, now: Micros) {
        self.timeline.extend(now, Store);
        self.asleep = cause;
    }

    /// Notes that the memory is loaded anew, because this instance has gained shards. `known` are
    /// the timeouts in memory that are due.
    pub(super) fn gain_shards(&mut self, known: impl Iterator<Item = TimeoutId>, now: Micros) {
        self.gained = now;
        self.known = known.collect();
    }

    /// Returns the time from which an attempt that begins at `now` has waited here.
    pub(super) fn waited_from(&mut self, id: TimeoutId, attempt: &Attempt, now: Micros) -> Micros {
        let due = attempt.due.min(now);
        let is_new = due < self.gained && !self.known.remove(&id);
        if is_new { self.gained.min(now) } else { due }
    }

    /// Splits the lateness of an attempt that begins at `now` and has waited here since `from`.
    pub(super) fn split(&mut self, attempt: &Attempt, from: Micros, wait: &Wait<'_>, now: Micros) -> DurableLateness {
        let due = attempt.due.min(now);
        self.timeline.name_quota(from);
        // The delay of a retry has been chosen, so the lateness counts from its end.
        let planned = if attempt.tries() == 1 { attempt.planned.min(due) } else { due };
        let mut lateness = DurableLateness::default();
        lateness.add(PutBack, between(planned, due));
        lateness.add(Lease, between(due, from));
        let mut rest = DurableLateness::default();
        // The keeper may work or sleep while the rate does not let the attempt begin.
        let mut add = |from: Micros, until| {
            let paced = wait.paced.clamp(from, until);
            let mut by_rate = self.timeline.split(from, paced);
            by_rate.reassign(System, Rate);
            by_rate.reassign(Quota, Rate);
            by_rate.reassign(Store, Rate);
            rest.add_all(&by_rate);
            rest.add_all(&self.timeline.split(paced, until));
        };
        let mut from = from;
        for (begin, end) in wait.pauses {
            let begin = (*begin).clamp(from, now);
            add(from, begin);
            from = (*end).clamp(from, now);
            lateness.add(DurableLateCause::Paused, between(begin, from));
        }
        add(from, now);
        rest.reassign(System, wait.cause);
        if wait.cause != System {
            rest.reassign(Quota, wait.cause);
        }
        lateness.add_all(&rest);
        lateness
    }

    /// Counts a timeout that was due and whose topic has no handler here. A topic may have
    /// thousands of them.
    pub(super) fn add_unhandled(&mut self, topic: &str) {
        self.figures.lock().without_handler += 1;
        let (timeouts, _) = self.unhandled.entry(topic.to_owned()).or_insert((0, Micros::MIN));
        *timeouts += 1;
    }

    /// Reports the topics without a handler whose pause is over. Forgets a topic if it has had no
    /// timeout since.
    pub(super) fn report_unhandled(&mut self, timer: &str, now: Micros) {
        self.unhandled.retain(|topic, (timeouts, next)| {
            if *next > now || *timeouts == 0 {
                return *next > now;
            }
            tracing::warn!(%timer, %topic, timeouts, "the topic has no handler here");
            *timeouts = 0;
            *next = now.saturating_add(REPORT_PAUSE);
            true
        });
    }

    /// Returns the time of the next look at the oldest timeouts, if one is needed. `is_waiting`
    /// tells whether timeouts are due. `next_due` is the next time at which one becomes due
    /// although the keeper takes no turn.
    pub(super) fn next_look(&self, is_waiting: impl FnOnce() -> bool, next_due: Option<Micros>) -> Option<Micros> {
        if self.is_stale && (self.has_found || is_waiting()) {
            return Some(self.next_look);
        }
        Some(next_due?.saturating_add(MIN_AGE).max(self.next_look))
    }

    /// Notes a turn. Returns `true` if the keeper may look at the oldest timeouts again.
    pub(super) fn may_look(&mut self, now: Micros) -> bool {
        self.is_stale = true;
        self.next_look <= now
    }

    /// Publishes the ages of the oldest timeouts. `first` has the first due time of each topic
    /// whose timeouts are due.
    pub(super) fn note_look(&mut self, first: &[(Arc<str>, Micros)], now: Micros) {
        // A topic whose timeouts are all too young for this look needs another look.
        let (old, young): (Vec<_>, Vec<_>) = first.iter().partition(|(_, due)| *due <= now - MIN_AGE);
        let young = young.iter().map(|(_, due)| *due).min();
        self.is_stale = young.is_some();
        let pause = young.map_or(LOOK_PAUSE, |young| (young + MIN_AGE - now).max(MIN_LOOK_PAUSE));
        self.next_look = now.saturating_add(pause);
        self.has_found = !old.is_empty();
        let oldest = old.iter().map(|(topic, due)| (topic.to_string(), between(*due, now)));
        self.figures.set_oldest_due(oldest.collect());
    }
}
