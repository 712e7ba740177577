//! The records that the tasks of a storm write: their lateness, and the number of kept timeouts
//! that have run by the millisecond of their deadline.
//!
//! The book is never freed, because a task may run after everything else has ended.

use super::super::histogram::{Counts, Histogram};
use crate::peers::Job;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) struct Book {
    begin: Instant,
    lags: Histogram,
    /// The worst lag since it was last taken.
    worst_lag: AtomicU64,
    early: AtomicU64,
    ran: AtomicU64,
    /// Counts the kept timeouts only.
    ran_by_due: Vec<AtomicU32>,
    newest_due: AtomicU64,
    /// The end of each timeout, if the ends are checked one by one.
    ends: Vec<AtomicU8>,
}

/// The mark of a run in [`Book::ended`].
pub(super) const RAN: u8 = 1;
/// The mark of a cancellation in [`Book::ended`].
pub(super) const CANCELLED: u8 = 16;

impl Book {
    /// Creates a book that lives as long as the process, for deadlines within `span` and with the
    /// given number of places.
    pub(super) fn leak(span: Duration, places: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            begin: Instant::now(),
            lags: Histogram::default(),
            worst_lag: AtomicU64::new(0),
            early: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            ran_by_due: by_millisecond(span),
            newest_due: AtomicU64::new(0),
            ends: std::iter::repeat_with(AtomicU8::default).take(places).collect(),
        }))
    }

    /// Returns the nanoseconds since the book was created.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(super) fn lags(&self) -> Counts {
        Histogram::sum([&self.lags])
    }

    /// Returns the worst lag since the last call.
    pub(super) fn take_worst_lag(&self) -> u64 {
        // ORDERING: Relaxed, because this is only a figure.
        self.worst_lag.swap(0, Ordering::Relaxed)
    }

    pub(super) fn early(&self) -> u64 {
        // ORDERING: Relaxed, because this is only a count.
        self.early.load(Ordering::Relaxed)
    }

    pub(super) fn ran(&self) -> u64 {
        // ORDERING: Relaxed, because this is only a count.
        self.ran.load(Ordering::Relaxed)
    }

    /// Returns the number of kept timeouts due before the millisecond `end` that have run.
    pub(super) fn ran_before(&self, end: usize) -> u64 {
        sum_before(&self.ran_by_due, end)
    }

    /// Returns the latest deadline of the timeouts that have run.
    pub(super) fn newest_due(&self) -> u64 {
        // ORDERING: Relaxed, because this is only a hint.
        self.newest_due.load(Ordering::Relaxed)
    }

    /// Records the end of the timeout at `place`, if the book has places.
    #[inline]
    pub(super) fn ended(&self, place: u32, end: u8) {
        if let Some(slot) = self.ends.get(place as usize) {
            // ORDERING: Relaxed, because the ends are read after all threads have ended.
            slot.fetch_add(end, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the ends are checked one by one.
    pub(super) fn has_places(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Returns `true` if `place` is beyond the last place.
    pub(super) fn is_full(&self, place: u32) -> bool {
        place as usize >= self.ends.len()
    }

    /// Returns the span of the deadlines that the book has room for.
    pub(super) fn span(&self) -> Duration {
        Duration::from_millis(self.ran_by_due.len() as u64 - 1)
    }

    /// Returns the end of each timeout that has a place.
    #[cfg(test)]
    pub(super) fn ends(&self) -> Vec<u8> {
        // ORDERING: Relaxed, because all threads have ended.
        self.ends.iter().map(|end| end.load(Ordering::Relaxed)).collect()
    }
}

/// Creates a count for each millisecond of `span`.
pub(super) fn by_millisecond(span: Duration) -> Vec<AtomicU32> {
    std::iter::repeat_with(AtomicU32::default).take(span.as_millis() as usize + 1).collect()
}

pub(super) fn sum_before(counts: &[AtomicU32], end: usize) -> u64 {
    // ORDERING: Relaxed, because these are only counts.
    counts.iter().take(end).map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
}

/// Returns the index of `nanos` in `counts`, clamped to the last one.
#[inline]
pub(super) fn millisecond(nanos: u64, counts: &[AtomicU32]) -> usize {
    ((nanos / 1_000_000) as usize).min(counts.len().saturating_sub(1))
}

/// The job of one timeout, which records its run in the book.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) book: &'static Book,
    /// The deadline by the clock of the book, or 0 if it is unknown. Timeouts that are to be
    /// cancelled have no known deadline unless each end is checked.
    pub(super) due: u64,
    pub(super) place: u32,
    pub(super) is_kept: bool,
    /// Whether the lateness is recorded. Only kept timeouts can be timed.
    pub(super) is_timed: bool,
}

impl Job for Mark {
    fn run(self) {
        let Self { book, due, place, is_kept, is_timed } = self;
        if is_timed {
            let now = book.now();
            let lag = now.saturating_sub(due);
            book.lags.add(lag);
            // ORDERING: Relaxed, because these are counts, a figure and a hint.
            if lag > book.worst_lag.load(Ordering::Relaxed) {
                book.worst_lag.fetch_max(lag, Ordering::Relaxed);
            }
            if now < due {
                book.early.fetch_add(1, Ordering::Relaxed);
            }
        }
        if is_kept {
            // ORDERING: Relaxed, as above.
            book.ran_by_due[millisecond(due, &book.ran_by_due)].fetch_add(1, Ordering::Relaxed);
            if due > book.newest_due.load(Ordering::Relaxed) {
                book.newest_due.fetch_max(due, Ordering::Relaxed);
            }
        }
        book.ended(place, RAN);
        // ORDERING: Relaxed, because this is only a count.
        book.ran.fetch_add(1, Ordering::Relaxed);
    }
}
