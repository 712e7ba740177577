//! The failures of the store, and the pauses that follow them.
//!
//! - After a failure that leaves the instance in place, the keeper writes again after a pause.
//! - After a lost answer, a lost connection or a take-over, it *must rejoin* the store.
//! - While another program has *locked* the store, each turn tries again without a pause, because
//!   the store waits a little for the lock.

use crate::store::{Micros, StoreError};
use crate::time::between;
use std::time::{Duration, Instant};

/// The first pause after a failure of the store, while a timeout is locked, and after a task was
/// rejected by its executor.
pub(super) const MIN_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The clock of the keeper's pauses, which is the system's. On virtual time it is the store's, so
/// that a pause ends when the driver has moved the time.
#[derive(Clone, Copy)]
pub(super) struct PauseClock {
    /// An instant on virtual time, and the same time on the store's clock.
    origin: Option<(Instant, Micros)>,
}

impl PauseClock {
    pub(super) fn new(is_virtual: bool, now: Micros) -> Self {
        Self { origin: is_virtual.then(|| (Instant::now(), now)) }
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.origin.is_some()
    }

    /// Returns the current time. `now` reads the store's clock.
    pub(super) fn present(&self, now: impl FnOnce() -> Micros) -> Instant {
        let Some((begin, then)) = self.origin else { return Instant::now() };
        begin.checked_add(between(then, now())).unwrap_or(begin)
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

/// The state of the connection to the store.
pub(super) struct Failures {
    clock: PauseClock,
    must_rejoin: bool,
    /// The text of the last failure.
    text: String,
    pause: Duration,
    /// The keeper does not wake up for a commit before this time. A message that arrives earlier is
    /// written at once.
    paused_until: Option<Instant>,
    /// Whether this turn has found that another program has locked the store.
    is_locked: bool,
    /// Whether the previous turn has found and reported that.
    was_locked: bool,
}

impl Failures {
    pub(super) fn new(clock: PauseClock) -> Self {
        Self {
            clock,
            must_rejoin: false,
            text: String::new(),
            pause: clock.first_pause(),
            paused_until: None,
            is_locked: false,
            was_locked: false,
        }
    }

    pub(super) fn clock(&self) -> &PauseClock {
        &self.clock
    }

    pub(super) fn must_rejoin(&self) -> bool {
        self.must_rejoin
    }

    pub(super) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Returns `true` if this turn can write nothing.
    pub(super) fn is_unreachable(&self) -> bool {
        self.must_rejoin || self.is_locked
    }

    /// Returns the error of calls that wait for the store, or `None` if they wait for nothing.
    pub(super) fn outage(&self) -> Option<StoreError> {
        if self.must_rejoin {
            Some(StoreError::Failed(format!("the store has not been joined again: {}", self.text)))
        } else if self.is_locked || self.was_locked {
            Some(StoreError::Busy)
        } else {
            None
        }
    }

    /// Returns the end of the pause that is under way.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Notes that a turn begins.
    pub(super) fn begin_turn(&mut self) {
        self.was_locked = self.is_locked;
        self.is_locked = false;
    }

    /// Notes that another program has locked the store, so that this turn writes nothing more.
    /// Returns `true` for the first time.
    pub(super) fn lock(&mut self) -> bool {
        let is_new = !self.is_locked && !self.was_locked;
        self.is_locked = true;
        is_new
    }

    /// Notes that the connection is broken.
    pub(super) fn lose_connection(&mut self) {
        self.must_rejoin = true;
        self.text = "its connection is broken".to_owned();
    }

    /// Notes a failure, after which the pauses grow.
    pub(super) fn add(&mut self, error: &StoreError, now: Instant) {
        self.must_rejoin |= matches!(error, StoreError::InDoubt(_) | StoreError::Disconnected(_) | StoreError::Fenced);
        self.text = error.to_string();
        // After the first failure the keeper joins again at once, so that calls wait for it.
        let joins_at_once = self.must_rejoin && self.pause <= MIN_PAUSE;
        self.paused_until = if joins_at_once { None } else { Some(now + self.pause) };
        self.pause = self.clock.next_pause(self.pause, MAX_PAUSE);
    }

    /// Notes that a batch was written.
    pub(super) fn end(&mut self) {
        self.pause = self.clock.first_pause();
        self.paused_until = None;
    }

    /// Notes that the keeper has joined again. The next failure still has a longer pause.
    pub(super) fn rejoin(&mut self) {
        self.must_rejoin = false;
        self.paused_until = None;
    }

    /// Ends the pause, because a call or the driver asks for a turn.
    pub(super) fn end_pause(&mut self) {
        self.paused_until = None;
    }
}
