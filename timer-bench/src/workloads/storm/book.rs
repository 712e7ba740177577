//! What the runs of a storm write: how late they were, and how many of those that are kept have run, by the
//! millisecond in which they were due.
//!
//! It is never freed: a run may come when everything else is over.

use super::super::histogram::{Counts, Histogram};
use crate::peers::Job;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) struct Book {
    begin: Instant,
    lags: Histogram,
    early: AtomicU64,
    ran: AtomicU64,
    /// Of those that are kept.
    ran_by_due: Vec<AtomicU32>,
    newest_due: AtomicU64,
    /// How each timer ended, if that is to be checked one by one.
    ends: Vec<AtomicU8>,
}

/// The run of a timer, in its [`Book`].
pub(super) const RAN: u8 = 1;
/// Its cancellation.
pub(super) const CANCELLED: u8 = 16;

impl Book {
    /// A new one, for as long as the process lives: for deadlines within `span`, and with a place for each of so many timers.
    pub(super) fn leak(span: Duration, places: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            begin: Instant::now(),
            lags: Histogram::default(),
            early: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            ran_by_due: by_millisecond(span),
            newest_due: AtomicU64::new(0),
            ends: std::iter::repeat_with(AtomicU8::default).take(places).collect(),
        }))
    }

    /// Nanoseconds since it was made.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(super) fn lags(&self) -> Counts {
        Histogram::sum([&self.lags])
    }

    pub(super) fn early(&self) -> u64 {
        // ORDERING: Relaxed, a count.
        self.early.load(Ordering::Relaxed)
    }

    pub(super) fn ran(&self) -> u64 {
        // ORDERING: Relaxed, a count.
        self.ran.load(Ordering::Relaxed)
    }

    /// How many of those that are kept, and were due before the millisecond `end`, have run.
    pub(super) fn ran_before(&self, end: usize) -> u64 {
        sum_before(&self.ran_by_due, end)
    }

    /// The latest deadline of those that have run.
    pub(super) fn newest_due(&self) -> u64 {
        // ORDERING: Relaxed, a hint.
        self.newest_due.load(Ordering::Relaxed)
    }

    /// Writes down how the timer at this place ended, if places were asked for.
    #[inline]
    pub(super) fn ended(&self, place: u32, end: u8) {
        if let Some(slot) = self.ends.get(place as usize) {
            // ORDERING: Relaxed, read when all threads have ended.
            slot.fetch_add(end, Ordering::Relaxed);
        }
    }

    /// Whether each is to be checked.
    pub(super) fn has_places(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether this place is beyond the last one.
    pub(super) fn is_full(&self, place: u32) -> bool {
        place as usize >= self.ends.len()
    }

    /// For which deadlines it is.
    pub(super) fn span(&self) -> Duration {
        Duration::from_millis(self.ran_by_due.len() as u64 - 1)
    }

    /// How each of the first so many ended.
    #[cfg(test)]
    pub(super) fn ends(&self) -> Vec<u8> {
        // ORDERING: Relaxed, all threads have ended.
        self.ends.iter().map(|end| end.load(Ordering::Relaxed)).collect()
    }
}

/// A count for each millisecond of `span`, its memory touched.
pub(super) fn by_millisecond(span: Duration) -> Vec<AtomicU32> {
    std::iter::repeat_with(AtomicU32::default).take(span.as_millis() as usize + 1).collect()
}

pub(super) fn sum_before(counts: &[AtomicU32], end: usize) -> u64 {
    // ORDERING: Relaxed, counts.
    counts.iter().take(end).map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
}

/// The millisecond of `nanos`, within `counts`.
#[inline]
pub(super) fn millisecond(nanos: u64, counts: &[AtomicU32]) -> usize {
    ((nanos / 1_000_000) as usize).min(counts.len().saturating_sub(1))
}

/// What one timer is to do: tell the book that it ran.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) book: &'static Book,
    /// Its deadline by the clock of the book, or 0 if that is not known: such ones are cancelled, as a rule.
    pub(super) due: u64,
    pub(super) place: u32,
    pub(super) is_kept: bool,
}

impl Job for Mark {
    fn run(self) {
        let Self { book, due, place, is_kept } = self;
        if is_kept {
            let now = book.now();
            book.lags.add(now.saturating_sub(due));
            // ORDERING: Relaxed, counts and a hint.
            book.early.fetch_add(u64::from(now < due), Ordering::Relaxed);
            book.ran_by_due[millisecond(due, &book.ran_by_due)].fetch_add(1, Ordering::Relaxed);
            book.newest_due.fetch_max(due, Ordering::Relaxed);
        }
        book.ended(place, RAN);
        // ORDERING: Relaxed, a count.
        book.ran.fetch_add(1, Ordering::Relaxed);
    }
}
