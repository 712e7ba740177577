//! A value that belongs to whoever set one bit of the word beside it. The only unsafe code of the workspace.
//!
//! **What it promises.** [`Held<T>`] is an atomic word and a `T`. The word's lowest bit, [`HELD`], says that somebody
//! holds the value; the other 63 bits are the user's. A [`Hold`] is made only by a compare-and-swap that turned the bit
//! from 0 to 1, and only giving the hold up turns it back. So at any time there is at most one [`Hold`], and it alone
//! reaches the value: `Held` is a mutual exclusion that never blocks and shares its word with other decisions. Two
//! things are made of it: a shard's latch (who holds may touch the wheel) and a timeout's state word (who wins the
//! timeout owns its task).
//!
//! **Why not a mutex beside the word.** The word is needed anyway: it decides the race. A `parking_lot::Mutex` that is
//! then always free costs two more read-modify-writes per access; ARCHITECTURE.md has the numbers.
//!
//! **What is absent.** No waiting, no poisoning, no fairness. A hold that is dropped without [`Hold::release`] keeps the
//! bit set for ever: that is how a value which is used up stays closed.

use super::{AtomicU64, Ordering, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// The bit of the word that says that somebody holds the value.
pub(crate) const HELD: u64 = 1;

/// The word of a [`Held`] value. Everybody may read it and change every bit but [`HELD`].
#[derive(Debug)]
pub(crate) struct HeldWord(AtomicU64);

impl HeldWord {
    /// The word as it is now.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of every change, so that what was written before the change that is
        // seen here is seen as well.
        self.0.load(Ordering::Acquire)
    }

    /// Replaces the word by what `change` makes of it, except for [`HELD`], which stays as it is. `Ok` has the word before.
    /// `Err` has the word for which `change` said `None`.
    #[inline]
    pub(crate) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.swap_by(|word| change(word).map(|new| (new & !HELD) | (word & HELD)))
    }

    /// Adds `amount`, which must be a multiple of 2, and returns the word before.
    #[inline]
    pub(crate) fn add(&self, amount: u64) -> u64 {
        // ORDERING: Release publishes what the caller did before (a push to the inbox) to the holder that sees the sum;
        // Acquire lets a caller that finds the value free go on from what its last holder left.
        self.0.fetch_add(amount & !HELD, Ordering::AcqRel)
    }

    #[inline]
    fn swap_by(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let mut word = self.load();
        loop {
            let Some(new) = change(word) else {
                return Err(word);
            };
            // ORDERING: AcqRel on success: taking the value sees all that its last holder wrote, giving it up publishes
            // all that this one wrote. Every change is a read-modify-write, so the word has one history that all agree on.
            // Acquire on failure: the next try decides by that word.
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(word),
                Err(seen) => word = seen,
            }
        }
    }
}

/// A value and the word that says who may touch it, in this order.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Held<T> {
    word: HeldWord,
    value: UnsafeCell<T>,
}

// SAFETY: a shared `Held` gives access to its value only through a `Hold`, of which there is at most one at a time, so
// sharing it only ever moves access to the `T` from thread to thread: `T: Send` is what that needs, as for a mutex.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T> Held<T> {
    /// A free value; [`HELD`] in `word` is ignored.
    pub(crate) fn new(word: u64, value: T) -> Self {
        Self { word: HeldWord(AtomicU64::new(word & !HELD)), value: UnsafeCell::new(value) }
    }

    /// The word, to look at and to change.
    #[inline]
    pub(crate) fn word(&self) -> &HeldWord {
        &self.word
    }

    /// Takes the value if it is free and `change` agrees: the word becomes what `change` makes of it, with [`HELD`] set,
    /// in one step. `Err` has the word that stood in the way.
    #[inline]
    pub(crate) fn try_hold(&self, change: impl Fn(u64) -> Option<u64>) -> Result<Hold<'_, T>, u64> {
        self.word
            .swap_by(|word| if word & HELD != 0 { None } else { change(word).map(|new| new | HELD) })
            .map(|_| Hold { held: self, value: PhantomData })
    }
}

/// The right to a [`Held`] value. Dropping it without [`release`](Hold::release) closes the value for ever.
#[derive(Debug)]
pub(crate) struct Hold<'a, T> {
    held: &'a Held<T>,
    /// Shares and moves between threads exactly as a `&mut T` would.
    value: PhantomData<&'a mut T>,
}

impl<'a, T> Hold<'a, T> {
    /// Gives the value back and changes the word in the same step. If `change` says `None` the hold goes on, and comes
    /// back in `Err`.
    #[inline]
    pub(crate) fn release(self, change: impl Fn(u64) -> Option<u64>) -> Result<(), Self> {
        match self.held.word.swap_by(|word| change(word).map(|new| new & !HELD)) {
            Ok(_) => Ok(()),
            Err(_) => Err(self),
        }
    }

    /// The word of the held value.
    #[inline]
    pub(crate) fn word(&self) -> &'a HeldWord {
        &self.held.word
    }
}

impl<T> Deref for Hold<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Hold` (it was made by the swap that set HELD, which nothing but its release clears), and
        // it is borrowed shared, so no exclusive reference to the value exists. The value lives as long as `held`.
        self.held.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Hold<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the one `Hold` is borrowed exclusively, so this is the only reference to the value.
        self.held.value.with_mut(|value| unsafe { &mut *value })
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_the_rest_of_the_word_is_free_to_change() {
        let held = Held::new(4 | HELD, 7);
        let mut hold = held.try_hold(|word| Some(word + 2)).unwrap();
        assert_eq!(held.word().load(), 6 | HELD);
        assert_eq!(held.try_hold(Some).unwrap_err(), 6 | HELD);
        assert_eq!(held.word().add(8), 6 | HELD);
        assert_eq!(held.word().update(|word| Some(word & !4)), Ok(14 | HELD), "HELD cannot be changed by an update");
        *hold += 1;
        let hold = hold.release(|_| None).unwrap_err();
        hold.release(Some).unwrap();
        assert_eq!(held.word().load(), 10);
        assert_eq!(*held.try_hold(Some).unwrap(), 8);
    }

    #[test]
    fn a_hold_that_is_dropped_closes_the_value() {
        let held = Held::new(0, String::from("used up"));
        let _ = held.try_hold(Some).unwrap();
        assert!(held.try_hold(Some).is_err());
    }

    #[test]
    fn refused_change_leaves_the_word_alone() {
        let held = Held::new(2, ());
        assert_eq!(held.try_hold(|_| None).unwrap_err(), 2);
        assert_eq!(held.word().update(|_| None), Err(2));
        assert_eq!(held.word().load(), 2);
    }
}
