//! Measures of durable timeouts, `E1` to `E4` and `E7`, for any implementation.
//!
//! An implementation is a [`Subject`] on a fresh store. Each process measures one [case](cases) on
//! one subject, after the [floor], which is a raw write and sync of 4 KB on the same disk. The
//! program `durable` brings the subjects, adds the cases that only our timer can do, starts all
//! cases and prints the tables.

pub mod cases;
pub mod floor;
pub mod lags;

use crate::row::Row;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub type Micros = i64;

/// A function that a subject calls when the handler of a timeout begins, with the due time.
pub type OnRun = Arc<dyn Fn(Micros) + Send + Sync>;

/// Durable timeouts of one implementation.
pub trait Subject: Send + Sync + 'static {
    /// Set if [`submit`](Self::submit) waits for the disk.
    const SUBMIT_WAITS: bool = true;

    /// The identity of a timeout.
    type Id;

    /// Schedules a timeout with the payload [`payload`]. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the implementation does.
    fn schedule(&self, delay: Duration) -> Result<Self::Id, String>;

    /// Schedules a timeout. An implementation that can do so does not wait for the disk, and says
    /// so by [`SUBMIT_WAITS`](Self::SUBMIT_WAITS).
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    fn submit(&self, delay: Duration) -> Result<(), String> {
        self.schedule(delay).map(drop)
    }

    /// Cancels a timeout durably.
    ///
    /// # Errors
    ///
    /// Fails if the implementation cannot do so.
    fn cancel(&self, id: Self::Id) -> Result<(), String>;

    /// Returns the number of transactions that have ended in the subject's database on a server.
    /// The query itself runs in another database, so it is not counted.
    ///
    /// # Errors
    ///
    /// Fails if the subject has no such database, or if the query fails.
    fn transactions(&self) -> Result<f64, String> {
        Err("it has no database on a server".to_owned())
    }
}

/// Returns the payload of every timeout, 100 bytes.
pub fn payload() -> Vec<u8> {
    vec![7; 100]
}

/// Returns the present time of the wall clock.
pub fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}

/// Returns a row of a case.
pub fn row(peer: &str, workload: &str, params: &str, value: f64, unit: &str) -> Row {
    let [peer, workload, params, unit] = [peer, workload, params, unit].map(str::to_owned);
    Row { peer, workload, params, value: Ok(value), unit }
}
