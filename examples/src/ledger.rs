//! What has ended, and how often: each of so many must end exactly once.
//!
//! Any thread may write; the sums are exact when all writers are done.

use std::sync::atomic::{AtomicU8, Ordering};

/// A count of ends for each of a fixed number of things.
///
/// ```
/// let ledger = examples::ledger::Ledger::new(2);
/// ledger.end(0);
/// assert_eq!((ledger.never(), ledger.again()), (1, 0));
/// ledger.end(0);
/// ledger.end(1);
/// assert_eq!((ledger.never(), ledger.again()), (0, 1));
/// assert!(!ledger.holds());
/// ```
#[derive(Debug)]
pub struct Ledger {
    ends: Box<[AtomicU8]>,
}

impl Ledger {
    /// A ledger of so many things, numbered from 0, none of which has ended.
    pub fn new(things: usize) -> Self {
        Self { ends: (0..things).map(|_| AtomicU8::new(0)).collect() }
    }

    /// Thing `number` ends.
    ///
    /// # Panics
    ///
    /// If there is no such thing.
    pub fn end(&self, number: usize) {
        // It saturates: 256 ends are not none.
        // ORDERING: Relaxed: a count alone; the sums are read after the writers were joined or heard from.
        _ = self.ends[number].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ends| Some(ends.saturating_add(1)));
    }

    /// How many have not ended.
    pub fn never(&self) -> usize {
        self.count(|ends| ends == 0)
    }

    /// How many have ended more than once.
    pub fn again(&self) -> usize {
        self.count(|ends| ends > 1)
    }

    /// Whether all have ended, each once.
    pub fn holds(&self) -> bool {
        self.count(|ends| ends != 1) == 0
    }

    fn count(&self, is: impl Fn(u8) -> bool) -> usize {
        // ORDERING: Relaxed: as above.
        self.ends.iter().filter(|ends| is(ends.load(Ordering::Relaxed))).count()
    }
}
