//! The attempts that have begun and not ended.
//!
//! An attempt takes a place of a handler. If its end waits aside, it is *parked* and takes none.

mod ends;
mod follow_ups;
mod limits;

pub(super) use ends::End;

use super::id_map::IdMap;
use super::settings::Settings;
use super::term::Progress;
use crate::TimeoutId;
use crate::done::Done;
use crate::schedule::CheckedTimeout;
use crate::store::Micros;
use crate::transaction::{Attempt, Operation};
use fastrand::Rng;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The largest number of attempts whose ends wait aside without a place of a handler. Further ones
/// keep their places, because memory is bounded.
const MAX_PARKED: usize = 1 << 14;

/// An attempt whose handler runs.
pub(super) struct Running {
    attempt: u32,
    /// The instance that has begun the attempt.
    instance: u32,
    forgiven: u32,
    /// The due time of the run before its retries.
    planned: Micros,
    pub(super) topic: Arc<str>,
    period: Option<Micros>,
    is_overdue: bool,
    pub(super) is_parked: bool,
    /// The next timeout of its key, which the handler has scheduled.
    then: Option<Box<CheckedTimeout>>,
    /// The result that the handler has returned after its attempt was cut off.
    late: Option<Done>,
    /// Whether a transaction that was to end the attempt was rolled back.
    work_has_failed: bool,
    /// The time of the next look at its time limit.
    look: Option<Micros>,
    progress: Arc<Progress>,
}

/// The attempts of a timer.
pub(super) struct Attempts {
    settings: Arc<Settings>,
    /// The instance of the store, which makes ids.
    instance: u32,
    running: IdMap<Running>,
    /// The number of attempts that count as overdue and take places.
    overdue: usize,
    parked: usize,
    /// The time of the next look at each attempt whose topic has a time limit.
    looks: BTreeSet<(Micros, TimeoutId)>,
    /// Attempts that were cut off and whose handlers have not returned, with `true` for those that
    /// transactions of the user have ended.
    stuck: HashMap<(TimeoutId, u32), bool>,
    /// The source of the random delays of retries.
    random: RefCell<Rng>,
}

impl Attempts {
    pub(super) fn new(settings: Arc<Settings>, instance: u32) -> Self {
        let random = RefCell::new(Rng::with_seed(settings.seed));
        Self {
            settings,
            instance,
            running: IdMap::default(),
            overdue: 0,
            parked: 0,
            looks: BTreeSet::new(),
            stuck: HashMap::new(),
            random,
        }
    }

    /// Notes that the keeper has become another instance of the store.
    pub(super) fn set_instance(&mut self, instance: u32) {
        self.instance = instance;
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn contains(&self, id: TimeoutId) -> bool {
        self.running.contains_key(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = TimeoutId> {
        self.running.keys().copied()
    }

    /// Returns `true` if this attempt of a timeout runs.
    pub(super) fn runs(&self, id: TimeoutId, attempt: u32) -> bool {
        self.get(id, attempt).is_some()
    }

    fn get(&self, id: TimeoutId, attempt: u32) -> Option<&Running> {
        self.running.get(&id).filter(|running| running.attempt == attempt)
    }

    fn get_mut(&mut self, id: TimeoutId, attempt: u32) -> Option<&mut Running> {
        self.running.get_mut(&id).filter(|running| running.attempt == attempt)
    }

    /// Returns the number of places of handlers that are taken.
    pub(super) fn occupied(&self) -> usize {
        self.running.len() - self.parked
    }

    /// Returns the number of free places.
    pub(super) fn free(&self) -> usize {
        self.settings.max_running.saturating_sub(self.occupied())
    }

    /// Returns the number of free places for overdue timeouts. They may use half of all places, so
    /// that new ones do not wait for them.
    pub(super) fn free_for_overdue(&self) -> usize {
        (self.settings.max_running / 2).max(1).saturating_sub(self.overdue)
    }

    /// Adds an attempt that has begun.
    pub(super) fn begin(&mut self, id: TimeoutId, attempt: &Attempt, is_overdue: bool, progress: Arc<Progress>) {
        let known = self.settings.topics.get_key_value(attempt.topic.as_str());
        let running = Running {
            attempt: attempt.attempt,
            instance: self.instance,
            forgiven: attempt.forgiven,
            planned: attempt.planned,
            topic: known.map_or_else(|| attempt.topic.as_str().into(), |(name, _)| name.clone()),
            period: attempt.period,
            is_overdue,
            is_parked: false,
            then: None,
            late: None,
            work_has_failed: false,
            look: None,
            progress,
        };
        self.overdue += usize::from(is_overdue);
        self.running.insert(id, running);
    }

    /// Removes the attempt of a timeout.
    pub(super) fn remove(&mut self, id: TimeoutId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        if let Some(look) = running.look {
            self.looks.remove(&(look, id));
        }
        if running.is_parked {
            self.parked -= 1;
        } else {
            self.overdue -= usize::from(running.is_overdue);
        }
        Some(running)
    }

    /// Returns `true` if an attempt has ended elsewhere, although its own end was refused. While
    /// this instance has the timeout, only a transaction of the user ends the attempt. That may be
    /// a transaction of another client, which the handler has not reported.
    pub(super) fn has_ended_elsewhere(&self, running: &Running) -> bool {
        running.progress.is_in_transaction() || running.instance == self.instance
    }

    /// Frees the place of an attempt whose end waits aside. Returns its topic, unless it has no
    /// place to free.
    pub(super) fn park(&mut self, id: TimeoutId) -> Option<Arc<str>> {
        let running = self.running.get_mut(&id).filter(|running| !running.is_parked)?;
        if self.parked >= MAX_PARKED {
            return None;
        }
        running.is_parked = true;
        self.parked += 1;
        self.overdue -= usize::from(running.is_overdue);
        Some(running.topic.clone())
    }

    /// Notes that the store has ended the attempt of a timeout. Returns its topic.
    pub(super) fn complete(&self, id: TimeoutId) -> Option<Arc<str>> {
        let running = self.running.get(&id)?;
        running.progress.complete();
        Some(running.topic.clone())
    }

    /// Notes that the work that was to end an attempt was not committed. The handler must not end
    /// its timeout without that work.
    pub(super) fn fail_work(&mut self, attempt: Option<(TimeoutId, u32)>) {
        if let Some(running) = attempt.and_then(|(id, attempt)| self.get_mut(id, attempt)) {
            running.work_has_failed = true;
        }
    }

    /// Returns the operations that put the timeouts back whose handlers have not started.
    pub(super) fn put_back(&self, due: Micros) -> Vec<Operation> {
        let waiting = self.running.iter().filter(|(_, running)| !running.progress.has_started());
        let retry = |(id, running): (&TimeoutId, &Running)| Operation::Retry {
            id: *id,
            attempt: running.attempt,
            due,
            forgive: true,
        };
        waiting.map(retry).collect()
    }
}
