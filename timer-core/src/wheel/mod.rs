//! Timing wheels: single-threaded data structures that know ticks and values.
//!
//! A tick is a plain `u64`. The owner of a wheel decides how long a tick lasts and when the clock
//! moves. There are two wheels behind one trait, [`TimingWheel`]:
//!
//! | | [`HierarchicalWheel`] | [`HashedWheel`] |
//! |---|---|---|
//! | scheme of Varghese & Lauck (1987) | 7 | 6 |
//! | known from | Kafka | Netty |
//! | best for | delays of all lengths | delays up to about one round, many of them due in each tick |
//! | a value is moved to another list | at most 10 times | never |
//! | an expiry also reads | nothing else | the other values of the same list |
//!
//! Both wheels keep these promises:
//!
//! - A value is never early and never forgotten. After `advance(now)`, all values that are due by
//!   `now` were handed out, and no others.
//! - Every `u64` is legal as a deadline and as a time. The clock may jump by any distance, and
//!   passing ticks cost nothing.
//! - `next_deadline` says when to call `advance` again, so that the owner may sleep through every
//!   empty tick.
//! - A key whose value is gone never finds another value.
//! - The memory follows the values that are in the wheel, not those that once were. Until the wheel
//!   is empty, it also keeps the table of the keys of its peak, 12 bytes a key. Each bucket that
//!   had a value may keep room for four. A hashed wheel also has about 90 bytes for each list.
//!
//! The module knows no clocks, threads or locks. It calls no code of others but the closure given
//! to `advance`.
//!
//! ```
//! use timer_core::wheel::{HierarchicalWheel, TimingWheel};
//!
//! let mut wheel = HierarchicalWheel::new();
//! let close = wheel.insert(1_000, "close the connection");
//! wheel.insert(250, "send again");
//! assert_eq!(wheel.next_deadline(), Some(250));
//!
//! wheel.advance(250, |what| assert_eq!(what, "send again"));
//! assert_eq!(wheel.remove(close), Some("close the connection"));
//! assert_eq!(wheel.next_deadline(), None);
//! ```

mod bucket;
mod discarded;
mod hashed;
mod hierarchical;
mod keyed;
mod location;
mod raw;
mod slab;

pub(crate) use bucket::{Bucket, CHUNK, Chunk, Part};
pub(crate) use hashed::RawHashed;
pub(crate) use hierarchical::RawHierarchical;
pub use keyed::{HashedWheel, HierarchicalWheel};
pub(crate) use location::{Location, Tracker};
pub(crate) use raw::{Base, BucketSpan, RawWheel};
pub use slab::Key;
pub(crate) use slab::{Item, Slab};

/// Seals [`TimingWheel`].
mod sealed {
    pub trait Sealed {}
}

#[cfg(all(test, not(timer_loom)))]
mod tests;

/// A set of values with deadlines, from which values are removed by key or handed out when they are
/// due.
///
/// Code that is written against this trait works with either wheel. The trait is sealed. All ticks
/// are `u64`, without a unit, and no argument causes a panic. Only an insertion beyond 2^32 - 1
/// values panics.
///
/// ```
/// use timer_core::wheel::{HashedWheel, HierarchicalWheel, TimingWheel};
///
/// fn due_by<W: TimingWheel<char>>(mut wheel: W, now: u64) -> String {
///     for (deadline, value) in [(3, 'c'), (1, 'a'), (2, 'b')] {
///         wheel.insert(deadline, value);
///     }
///     let mut due = String::new();
///     wheel.advance(now, |value| due.push(value));
///     due
/// }
///
/// assert_eq!(due_by(HierarchicalWheel::new(), 2), "ab");
/// assert_eq!(due_by(HashedWheel::new(8), 2), "ab");
/// ```
pub trait TimingWheel<T>: sealed::Sealed {
    /// Inserts `value`, to be handed out once the clock has reached `deadline`. O(1).
    ///
    /// Every deadline is accepted. A value whose deadline is not after [`now`](TimingWheel::now) is
    /// overdue. The next [`advance`](TimingWheel::advance) hands it out, even if that call does not
    /// move the clock.
    ///
    /// ```
    /// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
    ///
    /// let mut wheel = HierarchicalWheel::new();
    /// wheel.advance(100, |_: &str| ());
    /// wheel.insert(7, "long overdue");
    ///
    /// let mut due = Vec::new();
    /// wheel.advance(100, |value| due.push(value));
    /// assert_eq!(due, ["long overdue"]);
    /// ```
    #[doc(alias = "newTimeout")]
    #[doc(alias = "schedule")]
    fn insert(&mut self, deadline: u64, value: T) -> Key;

    /// Removes the value of `key` and returns it. Returns `None` if it has expired or was removed.
    /// O(1).
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::new(64);
    /// let key = wheel.insert(5, "value");
    /// assert_eq!(wheel.remove(key), Some("value"));
    /// assert_eq!(wheel.remove(key), None);
    /// ```
    #[doc(alias = "cancel")]
    fn remove(&mut self, key: Key) -> Option<T>;

    /// Moves the clock to `now` and hands every value with a deadline up to and including `now` to
    /// `expired`.
    ///
    /// If `now` is before the clock, the clock stays, and overdue values are handed out all the
    /// same. The cost grows with the number of values that are due or that cascade. Passing ticks
    /// costs nothing.
    ///
    /// Values of different ticks come in the order of their ticks if the clock is moved from one
    /// [`next_deadline`](TimingWheel::next_deadline) to the next. A call that passes several of them
    /// may mix their values. The order of the values of one tick is not specified.
    ///
    /// If `expired` panics, the value that it was given is gone. The others stay, and the next call
    /// hands them out. The clock may then be before `now`.
    ///
    /// ```
    /// use timer_core::wheel::{HierarchicalWheel, TimingWheel};
    ///
    /// let mut wheel = HierarchicalWheel::new();
    /// wheel.insert(10, "ten");
    /// wheel.insert(11, "eleven");
    ///
    /// let mut due = Vec::new();
    /// wheel.advance(10, |value| due.push(value));
    /// assert_eq!(due, ["ten"]);
    /// assert_eq!(wheel.now(), 10);
    /// ```
    #[doc(alias = "advanceClock")]
    #[doc(alias = "expireTimeouts")]
    #[doc(alias = "poll")]
    fn advance(&mut self, now: u64, expired: impl FnMut(T));

    /// Returns the tick at which to call [`advance`](TimingWheel::advance) next, or `None` if the
    /// wheel is empty. O(1).
    ///
    /// The tick is after [`now`](TimingWheel::now) and not after the earliest deadline. It is the
    /// earliest deadline itself, unless a removal or a panic of `expired` has left the wheel with a
    /// lower bound. Advancing to that tick brings the bound up to date. If a value is overdue, the
    /// tick is the next one. If `now` is `u64::MAX`, the tick is `u64::MAX`.
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::new(64);
    /// assert_eq!(wheel.next_deadline(), None);
    /// wheel.insert(1_000_000, ());
    /// assert_eq!(wheel.next_deadline(), Some(1_000_000));
    /// ```
    #[doc(alias = "next_expiry")]
    fn next_deadline(&self) -> Option<u64>;

    /// Returns the time of the clock, which is the highest tick ever given to
    /// [`advance`](TimingWheel::advance), or 0.
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::<()>::new(64);
    /// wheel.advance(20, |_| ());
    /// wheel.advance(10, |_| ());
    /// assert_eq!(wheel.now(), 20);
    /// ```
    fn now(&self) -> u64;

    /// Returns the number of values in the wheel, including overdue ones.
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::new(64);
    /// wheel.insert(5, 'x');
    /// assert_eq!(wheel.len(), 1);
    /// ```
    fn len(&self) -> usize;

    /// Returns `true` if the wheel has no values.
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// assert!(TimingWheel::<char>::is_empty(&HashedWheel::new(64)));
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
