//! The trait of an implementation of durable timeouts.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub type Micros = i64;

/// A function that a subject calls when the handler of a timeout begins, with the due time.
pub type OnRun = Arc<dyn Fn(Micros) + Send + Sync>;

/// Durable timeouts of one implementation.
pub trait Subject: Sized + Send + Sync {
    /// Set if [`submit`](Self::submit) waits for the disk.
    const SUBMIT_WAITS: bool = true;

    /// Opens a new store, which is an SQLite file or the URL of an empty PostgreSQL database.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be opened.
    fn open(store: &str, on_run: OnRun) -> Result<Self, String>;

    /// Schedules a timeout with the payload [`payload`]. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the implementation does.
    fn schedule(&self, delay: Duration) -> Result<(), String>;

    /// Schedules a timeout. An implementation that can do so does not wait for the disk, and says
    /// so by [`SUBMIT_WAITS`](Self::SUBMIT_WAITS).
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    fn submit(&self, delay: Duration) -> Result<(), String> {
        self.schedule(delay)
    }
}

/// Returns the payload of every timeout, 100 bytes.
pub fn payload() -> Vec<u8> {
    vec![7; 100]
}

/// Returns the current time of the wall clock.
pub fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}
