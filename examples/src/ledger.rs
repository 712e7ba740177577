//! A count of ends, for programs in which each of many things must end exactly once.
//!
//! Any thread may write. The sums are exact once all writers are done.

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
    /// Creates a ledger of `things` things, numbered from 0, none of which has ended.
    pub fn new(things: usize) -> Self {
        Self { ends: (0..things).map(|_| AtomicU8::new(0)).collect() }
    }

    /// Counts an end of thing `number`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such thing.
    pub fn end(&self, number: usize) {
        // The count saturates, so that 256 ends do not look like none. ORDERING: Relaxed, because
        // the sums are read after the writers were joined or sent a message.
        _ = self.ends[number].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ends| Some(ends.saturating_add(1)));
    }

    /// Returns the number of things that have not ended.
    pub fn never(&self) -> usize {
        self.count(|ends| ends == 0)
    }

    /// Returns the number of things that have ended more than once.
    pub fn again(&self) -> usize {
        self.count(|ends| ends > 1)
    }

    /// Returns `true` if each thing has ended exactly once.
    pub fn holds(&self) -> bool {
        self.count(|ends| ends != 1) == 0
    }

    fn count(&self, is: impl Fn(u8) -> bool) -> usize {
        // ORDERING: Relaxed, because the writers were joined or sent a message.
        self.ends.iter().filter(|ends| is(ends.load(Ordering::Relaxed))).count()
    }
}
