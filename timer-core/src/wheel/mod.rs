//! Timing wheels: single-threaded data structures that know ticks and values, and nothing else.
//!
//! A tick is a plain `u64`; what it lasts, and who counts it, is the owner's affair. There are two wheels behind one
//! trait, [`TimingWheel`]:
//!
//! | | [`HierarchicalWheel`] | [`HashedWheel`] |
//! |---|---|---|
//! | scheme of Varghese & Lauck (1987) | 7 | 6 |
//! | known from | Kafka | Netty |
//! | best for | delays of all lengths | delays up to about one round |
//! | a value is moved | at most 10 times | never |
//! | an expiry also reads | nothing else | the slot's values of later rounds |
//!
//! Both keep these promises:
//!
//! - never early and never forgotten: after `advance(now)`, what is due by `now` was handed out, and nothing else;
//! - any deadline, any uptime, any jump: all of `u64` is legal everywhere, and passing ticks cost nothing;
//! - `next_expiry` says when to call again, so that an owner may sleep through every empty tick;
//! - a key whose value is gone finds nothing, for ever;
//! - memory follows the values that are in the wheel, not those that once were.
//!
//! Absent here: clocks, threads, locks, and calls to the outside other than the closure given to `advance`.
//!
//! ```
//! use timer_core::wheel::{HierarchicalWheel, TimingWheel};
//!
//! let mut wheel = HierarchicalWheel::new();
//! let close = wheel.insert(1_000, "close the connection");
//! wheel.insert(250, "send again");
//! assert_eq!(wheel.next_expiry(), Some(250));
//!
//! wheel.advance(250, |what| assert_eq!(what, "send again"));
//! assert_eq!(wheel.remove(close), Some("close the connection"));
//! assert_eq!(wheel.next_expiry(), None);
//! ```

mod bucket;
mod chunks;
mod hashed;
mod hierarchical;
mod keyed;
mod location;
mod queue;
mod raw;
mod slab;

pub(crate) use bucket::{Slot, Slots};
pub(crate) use hashed::RawHashed;
pub(crate) use hierarchical::RawHierarchical;
pub use keyed::{HashedWheel, HierarchicalWheel};
pub(crate) use location::{Location, Tracker};
pub(crate) use queue::{QueueWheel, Ranked};
pub(crate) use raw::RawWheel;
pub use slab::Key;

#[cfg(test)]
mod tests;

/// Values that come due at ticks: put in, taken out again by key, or handed out when their tick has come.
///
/// Written against this trait, code works with either wheel. All ticks are `u64`, without unit; nothing panics,
/// whatever the arguments. (Only the 2^32-1st value at a time is refused by a panic, as a full `Vec` would.)
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
pub trait TimingWheel<T> {
    /// Puts `value` in, to be handed out once the clock has reached `deadline`; O(1).
    ///
    /// Every deadline is accepted. One that is not beyond [`now`](TimingWheel::now) is overdue: the next
    /// [`advance`](TimingWheel::advance) hands it out, even one that does not move the clock.
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

    /// Takes the value of `key` out again; O(1). `None` if it is gone, by expiry or by an earlier removal.
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

    /// Moves the clock to `now` and hands every value with a deadline up to and including `now` to `expired`.
    ///
    /// A `now` behind the clock leaves the clock where it is; what is overdue is handed out all the same. The cost is
    /// that of the values which are due, and of those the wheel must move on the way, however many ticks are passed.
    ///
    /// Values of different ticks come in the order of their ticks as long as the clock is moved from one
    /// [`next_expiry`](TimingWheel::next_expiry) to the next; a call that passes several may mix them. Among values of
    /// one tick, the order is not promised.
    ///
    /// If `expired` panics, the value it was given is gone; the others stay and the next call hands them out. The clock
    /// may then be short of `now`.
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

    /// When to call [`advance`](TimingWheel::advance) next: a tick beyond [`now`](TimingWheel::now) and not beyond the
    /// earliest deadline, or `None` if the wheel is empty; O(1).
    ///
    /// It is the earliest deadline itself, unless a removal has left the wheel with an older idea of it; advancing to
    /// the tick that is named brings it up to date. If something is overdue it is the next tick. (At the end of time,
    /// when `now` is `u64::MAX`, it is `u64::MAX`.)
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::new(64);
    /// assert_eq!(wheel.next_expiry(), None);
    /// wheel.insert(1_000_000, ());
    /// assert_eq!(wheel.next_expiry(), Some(1_000_000));
    /// ```
    fn next_expiry(&self) -> Option<u64>;

    /// The tick that the clock has reached: the highest one ever given to [`advance`](TimingWheel::advance), or 0.
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

    /// How many values are in the wheel, overdue ones included.
    ///
    /// ```
    /// use timer_core::wheel::{HashedWheel, TimingWheel};
    ///
    /// let mut wheel = HashedWheel::new(64);
    /// wheel.insert(5, 'x');
    /// assert_eq!(wheel.len(), 1);
    /// ```
    fn len(&self) -> usize;

    /// Whether no value is in the wheel.
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
