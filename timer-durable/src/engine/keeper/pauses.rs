//! The clock of the keeper's pauses, and virtual time.

use super::{Keeper, MIN_PAUSE, Settings};
use crate::store::{Micros, Store};
use crate::time::{between, micros};
use std::time::{Duration, Instant};

/// The clock of the keeper's pauses, which is the system's. On virtual time it is the store's, so
/// that a pause ends when the driver has moved the time.
pub(super) struct PauseClock {
    /// An instant on virtual time, and the same time on the store's clock.
    origin: Option<(Instant, Micros)>,
}

impl PauseClock {
    pub(super) fn new(settings: &Settings, now: Micros) -> Self {
        Self { origin: settings.settle.as_ref().map(|_| (Instant::now(), now)) }
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.origin.is_some()
    }

    /// Returns the first pause after a failure of the store. On virtual time the keeper tries again
    /// at once.
    pub(super) fn first_pause(&self) -> Duration {
        if self.is_virtual() { Duration::ZERO } else { MIN_PAUSE }
    }

    /// Returns the pause after another failure. On virtual time it begins with a microsecond, so
    /// that a few failures make no run late.
    pub(super) fn next_pause(&self, pause: Duration, max: Duration) -> Duration {
        (pause * 2).clamp(if self.is_virtual() { Duration::from_micros(1) } else { MIN_PAUSE }, max)
    }
}

impl<S: Store> Keeper<S> {
    /// Returns the time of the keeper's next turn if nothing happens until then. It may be now.
    pub(crate) fn next_wake(&self) -> Option<Micros> {
        let until = self.waits_until()?;
        let wait = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(self.present()));
        Some(self.store.now().saturating_add(micros(wait)))
    }

    /// Returns the current time on the store's clock.
    pub(crate) fn now(&self) -> Micros {
        self.store.now()
    }

    /// Ends the pause after a failure of the store, because a call or the driver asks for a turn.
    pub(crate) fn end_pause(&mut self) {
        self.paused_until = None;
    }

    /// Moves the clock of a store on virtual time.
    pub(crate) fn advance_time(&mut self, by: Duration) {
        if let Err(error) = self.store.advance_time(by) {
            self.fail(&error);
        }
    }

    /// Returns the current time on the clock of the pauses.
    pub(super) fn present(&self) -> Instant {
        let Some((begin, then)) = self.clock.origin else { return Instant::now() };
        begin.checked_add(between(then, self.store.now())).unwrap_or(begin)
    }

    /// Returns the instant of the store's next upkeep. A store in one process counts its rows in
    /// slices of real time. On virtual time it counts them all at once, except in a pause.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let next = self.store.next_upkeep()?;
        Some(if self.clock.is_virtual() { self.paused_until.unwrap_or_else(|| self.present()) } else { next })
    }

    pub(super) fn is_upkeep_due(&self) -> bool {
        self.next_upkeep().is_some_and(|next| next <= self.present())
    }
}
