//! Operations that wait apart from all others.
//!
//! An operation is set aside if it is an end or a begin that the store refuses, or if another
//! transaction has locked its timeout. Such operations are written again without the others, after
//! pauses that grow, while all others go on. A statement that waits for a lock takes a while, so a
//! turn ends after a few of them, and the next ones write the rest, which waits here without a
//! pause.

use super::super::collect::{Collection, Origin, Place, Waited};
use super::Keeper;
use crate::TimeoutId;
use crate::message::Message;
use crate::store::{Store, StoreError};
use crate::transaction::Operation;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The longest pause after a refusal, and while a timeout is locked.
const MAX_REFUSED: Duration = Duration::from_secs(30);
pub(super) const MAX_LOCKED: Duration = Duration::from_secs(1);

/// The most attempts whose ends wait aside without a place of a handler. Further ones keep theirs,
/// because memory is bounded.
const MAX_PARKED: usize = 1 << 14;

/// The time for which a call waits for a timeout that another transaction has locked, for the store
/// that another program has locked, or until the keeper has joined the store again.
pub(super) const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// A batch that is written again at a later time.
pub(super) struct WaitingBatch {
    pub(super) collection: Collection,
    next: Instant,
    /// Whether the batch waits only because a turn was over, or because another program has locked
    /// the store. Later calls about its timeouts wait until it is written.
    is_postponed: bool,
}

impl<S: Store> Keeper<S> {
    /// Returns the time at which the next batch is written again.
    pub(super) fn next_aside(&self) -> Option<Instant> {
        self.aside.iter().map(|aside| aside.next).chain(self.next_locked()).min()
    }

    /// Fails the calls that are held and have waited for [`MAX_LOCK_WAIT`], if another program has
    /// locked the store.
    pub(super) fn fail_held(&mut self) {
        if self.was_store_locked {
            let late = self.held.take_late(self.present(), MAX_LOCK_WAIT);
            late.into_iter().for_each(|message| message.fail(&StoreError::Busy));
        }
    }

    /// Returns the place at which a message has to wait for a postponed batch about its timeout.
    pub(super) fn conflict_aside(&self, message: &Message) -> Option<Place> {
        if self.must_rejoin {
            return None;
        }
        if let Some(place) = self.conflict_locked(message) {
            return Some(place);
        }
        self.aside.iter().filter(|aside| aside.is_postponed).find_map(|aside| aside.collection.conflict(message))
    }

    /// Writes again the batches whose pause is over, until the turn is over, and at least one. The
    /// batch that has waited the longest comes first, so that each is reached.
    pub(super) fn write_aside(&mut self, until: Instant) {
        if self.aside.is_empty() {
            return;
        }
        let now = self.present();
        let (mut due, later): (Vec<WaitingBatch>, _) =
            std::mem::take(&mut self.aside).into_iter().partition(|aside| aside.next <= now);
        self.aside = later;
        due.sort_by_key(|aside| aside.next);
        for (n, aside) in due.into_iter().enumerate() {
            if self.must_rejoin || n > 0 && self.present() >= until {
                self.aside.push(aside);
                continue;
            }
            let mut free = if self.may_begin() { self.free_places() } else { 0 };
            // After the keeper has joined again, its memory may have begun what waited here.
            let (running, gates) = (&self.running, &self.gates);
            let (now, mut added) = (self.store.now(), HashMap::new());
            let [collection, surplus] = aside.collection.divide(|operation, origin| match operation {
                _ if matches!(origin, Origin::Call(reply) if reply.is_abandoned()) => false,
                Operation::Begin(id)
                    if running.contains_key(id) || free == 0 || !gates.admits(*id, &mut added, now) =>
                {
                    false
                }
                Operation::Begin(_) => {
                    free -= 1;
                    true
                }
                _ => true,
            });
            for id in surplus.batch.iter().filter_map(Operation::id) {
                self.push_ready(id);
                self.gates.forget(id);
            }
            if !collection.is_empty() {
                self.write(collection, until);
            }
        }
    }

    /// Leaves a batch to the next turn.
    pub(super) fn postpone(&mut self, mut collection: Collection) {
        let next = *collection.waited.postponed.get_or_insert_with(|| self.present());
        self.aside.push(WaitingBatch { collection, next, is_postponed: true });
    }

    /// Sets aside an operation that the store refuses and that no caller waits for.
    pub(super) fn set_refused_aside(&mut self, collection: Collection, error: &str) {
        self.figures.lock().store_errors += 1;
        if collection.waited.since.is_none() {
            let (timer, store) = (&self.settings.name, self.store.describe());
            tracing::error!(%timer, %store, %error, "the store refuses the end or the begin of an attempt");
        }
        self.set_aside(collection, MAX_REFUSED);
    }

    /// Sets aside operations whose timeouts other transactions have locked. Calls that have waited
    /// for [`MAX_LOCK_WAIT`] fail.
    pub(super) fn wait_for_locks(&mut self, mut collection: Collection) {
        self.note_locks(collection.waited, collection.batch.len());
        if self.has_waited(collection.waited) {
            collection = collection.fail_calls(&StoreError::Locked);
        }
        if !collection.is_empty() {
            self.set_aside(collection, MAX_LOCKED);
        }
    }

    /// Reports that other transactions have locked timeouts, for the first time.
    pub(super) fn note_locks(&self, waited: Waited, timeouts: usize) {
        if waited.since.is_none() {
            let timer = &self.settings.name;
            let store = self.store.describe();
            tracing::warn!(%timer, %store, timeouts, "another transaction has locked timeouts");
        }
    }

    /// Returns `true` if calls have waited for [`MAX_LOCK_WAIT`].
    pub(super) fn has_waited(&self, waited: Waited) -> bool {
        waited.since.is_some_and(|since| self.present() >= since + MAX_LOCK_WAIT)
    }

    /// Keeps a batch because another program has locked the store. The next turn writes it again.
    /// Calls that have waited for [`MAX_LOCK_WAIT`] fail.
    pub(super) fn wait_for_store(&mut self, collection: Collection) {
        self.note_store_lock();
        let [calls, rest] = collection.divide(|_, origin| matches!(origin, Origin::Call(_)));
        self.keep(rest, false);
        let calls = calls.fail_late_calls(self.present(), MAX_LOCK_WAIT, &StoreError::Busy);
        if !calls.is_empty() {
            self.postpone(calls);
        }
    }

    /// Notes that another program has locked the store, so that this turn writes nothing more.
    pub(super) fn note_store_lock(&mut self) {
        if !std::mem::replace(&mut self.is_store_locked, true) && !self.was_store_locked {
            let timer = &self.settings.name;
            let store = self.store.describe();
            tracing::warn!(%timer, %store, "another program has locked the store");
        }
    }

    /// Sets aside a begin that has failed alone, which others must not wait for.
    pub(super) fn set_failed_aside(&mut self, collection: Collection) {
        self.set_aside(collection, MAX_REFUSED);
    }

    /// Frees the place of an attempt whose end waits aside.
    fn park(&mut self, id: TimeoutId) {
        let Some(running) = self.running.get_mut(&id).filter(|running| !running.is_parked) else { return };
        if self.parked < MAX_PARKED {
            running.is_parked = true;
            self.parked += 1;
            self.overdue_running -= usize::from(running.is_overdue);
            self.gates.leave(&running.topic);
        }
    }

    fn set_aside(&mut self, mut collection: Collection, max: Duration) {
        let ends = collection.batch.iter().zip(&collection.origins);
        let ends: Vec<TimeoutId> =
            ends.filter(|(_, origin)| matches!(origin, Origin::End(_))).filter_map(|(end, _)| end.id()).collect();
        ends.into_iter().for_each(|id| self.park(id));
        let now = self.present();
        collection.waited.since.get_or_insert(now);
        let pause = collection.waited.pause.max(self.clock.first_pause());
        collection.waited.pause = self.clock.next_pause(pause, max);
        collection.waited.postponed = None;
        self.aside.push(WaitingBatch { collection, next: now + pause, is_postponed: false });
    }
}

/// Returns the timeouts whose begins wait aside.
pub(super) fn begins_in(aside: &[WaitingBatch]) -> HashSet<TimeoutId> {
    let operations = aside.iter().flat_map(|aside| &aside.collection.batch);
    operations.filter_map(|operation| if let Operation::Begin(id) = operation { Some(*id) } else { None }).collect()
}
