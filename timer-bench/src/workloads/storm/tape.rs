//! What one thread of a storm writes down, with plain stores, as the only one: writing costs little. Others read
//! it at any time, also when the thread hangs in a call.

use super::super::histogram::Histogram;
use super::book::by_millisecond;
use crate::scheduling::thread_cpu;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What one thread has done.
pub(super) struct Tape {
    pub(super) calls: Histogram,
    pub(super) cpu: Histogram,
    /// What it takes to read the CPU clock, which the measured CPU time includes.
    pub(super) reading: Duration,
    pub(super) pairs: AtomicU64,
    pub(super) accepted: AtomicU64,
    /// Cancelled before they ran.
    pub(super) cancelled: AtomicU64,
    /// Cancelled, and the timer does not tell whether they ran before.
    pub(super) untold: AtomicU64,
    /// Accepted and not to be cancelled, by the millisecond of their deadline.
    pub(super) kept_by_due: Vec<AtomicU32>,
    /// When the present call began; 0 between calls.
    pub(super) calling_since: AtomicU64,
    pub(super) has_ended: AtomicBool,
}

impl Tape {
    /// An empty one for deadlines within `span`, its memory touched.
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

/// One more, by the only thread that writes it.
#[inline]
pub(super) fn count(counter: &AtomicU64) {
    // ORDERING: Relaxed, a count with one writer.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The CPU time that one reading of the CPU clock takes, by the median.
pub(super) fn time_of_reading() -> Duration {
    let mut readings = [(); 101].map(|()| {
        let before = thread_cpu();
        thread_cpu() - before
    });
    readings.sort_unstable();
    readings[readings.len() / 2]
}
