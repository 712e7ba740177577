//! The clock of a store without a server.

use crate::time::{Micros, VIRTUAL_START, between, micros};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock of a store that belongs to one process. It follows the wall clock but never goes back,
/// or it stands still on virtual time. Clones are handles of the same clock, for the readers of the
/// store.
///
/// A store writes the latest time that it has used into its file, with each commit or at least
/// every few seconds, and starts the clock with that time when it is opened again. So nothing runs
/// early if the wall clock has stepped back while the process was down.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::store::{StoreClock, VIRTUAL_START};
///
/// let floor = 4_000_000_000_000_000;
/// let clock = StoreClock::new(floor);
/// assert_eq!(clock.now(), floor, "the wall clock is behind the file");
/// assert!(clock.time_until(floor + 1) > Duration::from_secs(3_600));
///
/// let clock = StoreClock::new(0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(clock.now(), VIRTUAL_START + 1_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct StoreClock(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The latest time that the clock has returned. The clock never returns an earlier one.
    floor: Micros,
    /// Whether only [`StoreClock::advance`] moves the time.
    is_virtual: bool,
}

impl StoreClock {
    /// Returns a clock that begins at the latest time that a file contains, or at 0 for a new file.
    #[must_use]
    pub fn new(floor: Micros) -> Self {
        Self(Arc::new(Mutex::new(State { floor, is_virtual: false })))
    }

    /// Returns the current time, for [`Store::now`](super::Store::now). Takes a short lock.
    #[must_use]
    pub fn now(&self) -> Micros {
        let mut state = self.lock();
        state.floor = state.wall().max(state.floor);
        state.floor
    }

    /// Returns how long it takes to reach `time`, for
    /// [`Store::time_until`](super::Store::time_until). After a step back the wall clock has to
    /// catch up first.
    #[must_use]
    pub fn time_until(&self, time: Micros) -> Duration {
        if time <= self.now() { Duration::ZERO } else { between(self.lock().wall(), time) }
    }

    /// Returns `true` if the time stands still.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.lock().is_virtual
    }

    /// Moves the time forward, for [`Store::advance_time`](super::Store::advance_time). From the
    /// first call on, nothing else moves it. It begins at [`VIRTUAL_START`], or at the time of the
    /// file if that is later.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.is_virtual = true;
        state.floor = state.wall().max(state.floor).saturating_add(micros(by));
    }

    /// Raises the current time to `floor` if it is earlier, for a store that opens its file again.
    /// Another process may have had the file in between, and may have written a later time.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::store::StoreClock;
    ///
    /// let clock = StoreClock::new(0);
    /// let now = clock.now();
    /// clock.raise_to(now - 1);
    /// clock.raise_to(now + 3_600_000_000);
    /// assert_eq!(clock.now(), now + 3_600_000_000);
    /// ```
    pub fn raise_to(&self, floor: Micros) {
        let mut state = self.lock();
        state.floor = state.floor.max(floor);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wall(&self) -> Micros {
        if self.is_virtual {
            return self.floor.max(VIRTUAL_START);
        }
        // Rounds up, so that a delay that starts here is not too short. No handler starts within
        // this microsecond, because the attempt is committed before it runs.
        micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, StoreClock, SystemTime, UNIX_EPOCH};

    #[test]
    fn a_delay_never_counts_from_before_the_call() {
        let clock = StoreClock::new(0);
        for _ in 0..1_000 {
            let called = SystemTime::now();
            assert!(UNIX_EPOCH + Duration::from_micros(clock.now().unsigned_abs()) >= called);
        }
    }
}
