//! A lock whose word also says who waits for it: a caller at the gate, or the worker by a wake request.
//!
//! ```text
//!   3          2       1       0
//! +----------+-------+-------+--------+
//! | RESERVED | GATE  | WAKE  | LOCKED |
//! +----------+-------+-------+--------+
//! ```
//!
//! A caller:
//!
//! 1. [`Lock::try_lock`]: swaps `LOCKED` in if `LOCKED`, `GATE` and `RESERVED` are clear, and looks [`SPINS`] times more before
//!    it gives up. Then it leaves a request elsewhere, or goes on with 2.
//! 2. [`Lock::lock`], the gate: takes the gate's mutex, so that one thread at a time waits for the lock itself. It looks for a
//!    while; then it sets `GATE`, by a swap that succeeds only while it sees `LOCKED` or `RESERVED`, and parks on the bell. It
//!    locks, and clears `GATE`, by a swap of a word in which both are clear.
//!
//! The worker:
//!
//! 3. [`Lock::try_lock_or_ask`]: locks, whatever else is set but `LOCKED`; if that stays set for a while, sets `WAKE`, by a swap
//!    that succeeds only while it sees `LOCKED`, and goes about other things.
//! 4. [`Lock::lock_reserved`], after 3 was in vain: the same with `RESERVED`, and parks. Callers keep out meanwhile.
//!
//! The holder:
//!
//! 5. [`Guard::unlock`]: `fetch_sub(LOCKED)`. The word before says what it owes, as [`Owed`]: `RESERVED`, or `WAKE`: it wakes the
//!    worker ([`Lock::take_wake`] first); `GATE` without `RESERVED`: it rings the bell. With `RESERVED` the worker rings as it
//!    unlocks.
//!
//! *The race*: a waiter sets its bit just as the holder unlocks. *Proof that none is lost*: both are read-modify-writes of one word.
//! If the bit comes first, the holder's subtraction returns it. If the subtraction comes first, the swap that would have set
//! the bit fails, and the thread looks again and finds the lock free.
//!
//! *Mutual exclusion*: only a swap that turns `LOCKED` on makes a [`Guard`], of a word in which it was off; only the guard's end
//! turns it off. So there is at most one guard, and it alone reaches the value.
//!
//! *How long*: a caller at the gate waits for the present holder, the worker, and the callers before it at the gate; what a
//! holder does is bounded by what its module does ([`crate::shard`]).
//!
//! This is one of two modules with unsafe code. Why not a `parking_lot` mutex: a worker behind a mutex that callers take at full
//! speed waits hundreds of milliseconds (48 threads on 2 cores: 700 to 970 ms against 9 to 20), and a request left in a queue
//! would cost a further read-modify-write on the way out. Absent: poisoning; nothing in here panics with the lock held.

use super::{AtomicU32, Mutex, Ordering, Parker, UnsafeCell, spin_loop};
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};

const LOCKED: u32 = 1;
const WAKE: u32 = 1 << 1;
const GATE: u32 = 1 << 2;
const RESERVED: u32 = 1 << 3;

/// How often a caller looks again, and how often at the gate, and how often the worker.
const SPINS: [u32; 3] = if cfg!(all(test, timer_loom)) { [0, 0, 0] } else { [8, 20, 30] };

/// A value and the lock beside it: the word comes last, next to the end of the value.
#[repr(C)]
pub(crate) struct Lock<T> {
    /// Held by the one thread that waits for the word.
    gate: Mutex<()>,
    bell: Parker,
    value: UnsafeCell<T>,
    word: AtomicU32,
}

// SAFETY: a shared `Lock` gives access to its value only through a `Guard`, of which there is at most one at a time, so sharing it
// only ever moves access to the `T` from thread to thread: `T: Send` is what that needs, as for a mutex.
unsafe impl<T: Send> Sync for Lock<T> {}

/// What a holder owes after it has left.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) struct Owed(u32);

impl Owed {
    /// The worker wants to be told that the lock is free; it has other things to do meanwhile.
    #[inline]
    pub(crate) fn wake(self) -> bool {
        self.0 & WAKE != 0
    }

    /// The worker waits for the lock.
    #[inline]
    pub(crate) fn ring(self) -> bool {
        self.0 & RESERVED != 0
    }

    #[inline]
    pub(crate) fn nothing(self) -> bool {
        self.0 == 0
    }
}

impl<T> Lock<T> {
    /// Where the word lies.
    #[cfg(test)]
    #[allow(dead_code, reason = "for a test of the layout on 64 bits")]
    pub(crate) const WORD_AT: usize = core::mem::offset_of!(Self, word);

    pub(crate) fn new(value: T) -> Self {
        Self { word: AtomicU32::new(0), value: UnsafeCell::new(value), gate: Mutex::new(()), bell: Parker::default() }
    }

    /// Step 1. `None` if the lock stays taken, or is promised to another thread.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // ORDERING: Relaxed, a guess; the swap decides.
        let word = self.word.load(Ordering::Relaxed);
        if word & (LOCKED | GATE | RESERVED) == 0 && self.swap(word, word | LOCKED) {
            return Some(Guard { lock: self });
        }
        self.try_lock_again()
    }

    #[cold]
    #[inline(never)]
    fn try_lock_again(&self) -> Option<Guard<'_, T>> {
        let mut spins = 0;
        loop {
            // ORDERING: Relaxed, as in `try_lock`.
            let word = self.word.load(Ordering::Relaxed);
            if word & (LOCKED | GATE | RESERVED) == 0 {
                if self.swap(word, word | LOCKED) {
                    return Some(Guard { lock: self });
                }
            } else if spins < SPINS[0] {
                spins += 1;
                spin_loop();
            } else {
                return None;
            }
        }
    }

    /// Step 2: waits for its turn.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        let gate = self.gate.lock();
        let mut spins = 0;
        loop {
            // ORDERING: Relaxed, as in `try_lock`.
            let word = self.word.load(Ordering::Relaxed);
            if word & (LOCKED | RESERVED) == 0 {
                if self.swap(word, (word | LOCKED) & !GATE) {
                    break;
                }
            } else if spins < SPINS[1] {
                spins += 1;
                spin_loop();
            } else if word & GATE != 0 || self.swap(word, word | GATE) {
                self.bell.park(None);
                spins = 0;
            }
        }
        drop(gate);
        Guard { lock: self }
    }

    /// The worker's step 3. `None`: the holder will wake it.
    pub(crate) fn try_lock_or_ask(&self) -> Option<Guard<'_, T>> {
        let mut spins = 0;
        loop {
            // ORDERING: Relaxed, as in `try_lock`.
            let word = self.word.load(Ordering::Relaxed);
            if word & LOCKED == 0 {
                if self.swap(word, (word | LOCKED) & !(RESERVED | WAKE)) {
                    return Some(Guard { lock: self });
                }
            } else if spins < SPINS[2] {
                spins += 1;
                spin_loop();
            } else if word & WAKE != 0 || self.swap(word, word | WAKE) {
                return None;
            }
        }
    }

    /// The worker's step 4: the next to lock is the caller. `park` waits for the holder's ring; it may return early.
    pub(crate) fn lock_reserved(&self, park: impl Fn()) -> Guard<'_, T> {
        let mut spins = 0;
        loop {
            // ORDERING: Relaxed, as in `try_lock`.
            let word = self.word.load(Ordering::Relaxed);
            if word & LOCKED == 0 {
                if self.swap(word, (word | LOCKED) & !(RESERVED | WAKE)) {
                    return Guard { lock: self };
                }
            } else if spins < SPINS[2] {
                spins += 1;
                spin_loop();
            } else if word & RESERVED != 0 || self.swap(word, word | RESERVED) {
                park();
            }
        }
    }

    /// For a holder that has unlocked and owes the worker a wake: takes the wake request off.
    pub(crate) fn take_wake(&self) {
        // ORDERING: AcqRel, a read-modify-write like all changes of the word, so that it has one history.
        self.word.fetch_and(!WAKE, Ordering::AcqRel);
    }

    /// Whether the worker's wake request still stands.
    pub(crate) fn is_wake_owed(&self) -> bool {
        // ORDERING: Acquire pairs with `take_wake`: if its result is seen here, so is what its thread did before.
        self.word.load(Ordering::Acquire) & WAKE != 0
    }

    #[inline]
    fn swap(&self, old: u32, new: u32) -> bool {
        // ORDERING: AcqRel: locking sees all that the last holder wrote; a waiter's bit is in the word's one history, and its thread
        // sees what the holder before it did. Relaxed on failure: the caller looks again.
        self.word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The right to a [`Lock`]'s value. End it by [`unlock`](Guard::unlock), which says what is owed.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Guard<'_, T> {
    /// Step 5, but for what is owed to the worker.
    #[inline]
    pub(crate) fn unlock(self) -> Owed {
        let lock = self.lock;
        mem::forget(self);
        release(lock)
    }
}

#[inline]
fn release<T>(lock: &Lock<T>) -> Owed {
    // ORDERING: AcqRel: Release gives all that was written under the lock to the next holder; Acquire, since it reads the waiters'
    // bits.
    let owed = lock.word.fetch_sub(LOCKED, Ordering::AcqRel) - LOCKED;
    if owed & (GATE | RESERVED) == GATE {
        ring(lock);
    }
    Owed(owed)
}

#[cold]
#[inline(never)]
fn ring<T>(lock: &Lock<T>) {
    lock.bell.unpark();
}

/// Only for an unwinding thread: what the worker is owed then comes with the next holder.
impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let _ = release(self.lock);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Guard` (it was made by the swap that set LOCKED, which nothing but its end clears), and it is
        // borrowed shared, so no exclusive reference to the value exists. The value lives as long as the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the one `Guard` is borrowed exclusively, so this is the only reference to the value.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ORDERING: Relaxed, for people to read.
        f.debug_struct("Lock").field("word", &self.word.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_guard_at_a_time() {
        let lock = Lock::new(7);
        let mut guard = lock.try_lock().unwrap();
        assert!(lock.try_lock().is_none());
        *guard += 1;
        assert!(guard.unlock().nothing());
        assert_eq!(*lock.lock(), 8);
    }

    #[test]
    fn the_holder_owes_what_the_worker_asked_for() {
        let lock = Lock::new(());
        let guard = lock.try_lock().unwrap();
        assert!(lock.try_lock_or_ask().is_none() && lock.is_wake_owed());
        let owed = guard.unlock();
        assert!(owed.wake() && !owed.ring());
        lock.take_wake();
        assert!(!lock.is_wake_owed());
        assert!(lock.try_lock_or_ask().unwrap().unlock().nothing());
    }

    #[test]
    fn a_reserved_lock_is_the_workers() {
        let lock = Lock::new(0);
        let held = std::cell::Cell::new(lock.try_lock());
        let guard = lock.lock_reserved(|| {
            let owed = held.take().unwrap().unlock();
            assert!(owed.ring(), "the holder sees that the worker waits");
            assert!(lock.try_lock().is_none(), "callers keep out");
        });
        assert!(guard.unlock().nothing());
    }
}
