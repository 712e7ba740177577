//! The records of one thread of a storm. The thread is the only writer and uses plain stores, so
//! that recording costs little. Other threads may read the records at any time, even while the
//! thread hangs in a call.

use super::super::histogram::Histogram;
use super::book::by_millisecond;
use crate::scheduling::thread_cpu;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The records of one thread.
pub(super) struct Tape {
    pub(super) calls: Histogram,
    pub(super) cpu: Histogram,
    /// The cost of reading the CPU clock, which is part of each measured CPU time.
    pub(super) reading: Duration,
    pub(super) pairs: AtomicU64,
    pub(super) accepted: AtomicU64,
    /// Timeouts that were cancelled before they ran.
    pub(super) cancelled: AtomicU64,
    /// Timeouts that were cancelled, where the timer does not report whether they ran before.
    pub(super) untold: AtomicU64,
    /// Accepted timeouts that are not to be cancelled, by the millisecond of their deadline.
    pub(super) kept_by_due: Vec<AtomicU32>,
    /// The beginning of the present call, or 0 between calls.
    pub(super) calling_since: AtomicU64,
    pub(super) has_ended: AtomicBool,
}

impl Tape {
    /// Creates empty records for deadlines within `span` and touches their memory.
    pub(super) fn new(span: Duration, reading: Duration) -> Self {
        Self {
            calls: Histogram::default(),
            cpu: Histogram::default(),
            reading,
            pairs: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            kept_by_due: by_millisecond(span),
            calling_since: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        }
    }
}

/// Increments a counter whose only writer is this thread.
#[inline]
pub(super) fn count(counter: &AtomicU64) {
    // ORDERING: Relaxed, because this thread is the only writer of the count.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Measures the CPU time of one reading of the CPU clock and returns the median.
pub(super) fn time_of_reading() -> Duration {
    let mut readings = [(); 101].map(|()| {
        let before = thread_cpu();
        thread_cpu() - before
    });
    readings.sort_unstable();
    readings[readings.len() / 2]
}
