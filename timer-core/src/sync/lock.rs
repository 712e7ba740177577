//! The lock of a shard. Its word also records whether a caller waits at the gate, and whether the
//! worker has reserved the lock.
//!
//! ```text
//!   2          1       0
//! +----------+-------+--------+
//! | RESERVED | GATE  | LOCKED |
//! +----------+-------+--------+
//! ```
//!
//! # A caller
//!
//! 1. [`Lock::try_lock`] sets `LOCKED` if no bit is set. Otherwise it looks at the word up to
//!    [`CALLER_SPINS`] times before it fails. The caller then leaves a request elsewhere, or
//!    continues with step 2.
//! 2. [`Lock::lock`] acquires the mutex of the gate, so that one thread at a time waits for the
//!    word. The thread spins for a while. Then it sets `GATE` by a swap that succeeds only if
//!    `LOCKED` or `RESERVED` is set, and waits for the bell. Once both bits are clear, one swap
//!    sets `LOCKED` and clears `GATE`.
//!
//! # The worker
//!
//! 3. [`Lock::lock_reserved`] sets `LOCKED` if it is clear, whatever the other bits are. If
//!    `LOCKED` stays set for a while, the worker sets `RESERVED` by a swap that succeeds only if
//!    `LOCKED` is set, and waits for the bell. While `RESERVED` is set, no caller locks. The swap
//!    that sets `LOCKED` clears it. [`Lock::lock_or_reserve`] does not wait, so that the worker can
//!    wait for the holders of several locks at once.
//!
//! # The holder
//!
//! 4. The drop of a [`Guard`] subtracts `LOCKED`. If the former word had `RESERVED`, it rings the
//!    bell for the worker. Otherwise, if it had `GATE`, it rings the bell for the caller. With
//!    both bits, the worker rings for the caller when it unlocks.
//!
//! # No wake-up is lost
//!
//! In the critical case, a waiter sets its bit while the holder unlocks. Both operations are
//! read-modify-writes of one word. If the bit is set first, the holder's subtraction returns it,
//! and the holder rings. The waiter looks at the word again while it holds the mutex of its bell,
//! which the holder acquires to ring. If the subtraction comes first, the worker's swap fails, and
//! so does a caller's unless the word has `RESERVED`. After a failure the waiter begins again. If a
//! caller's swap succeeds, the worker rings for the caller when it unlocks.
//!
//! # Mutual exclusion
//!
//! A [`Guard`] is made only by a swap that sets `LOCKED` in a word in which it was clear. Only the
//! end of the guard clears `LOCKED`. There is therefore at most one guard, and only a guard reaches
//! the value.
//!
//! # Duration of a wait
//!
//! The worker waits for the current holder. A caller at the gate waits for the current holder and
//! the worker, and the callers before it at the gate. A worker that has reserved several locks may
//! wait for the holders of others at the same time. By the time that a caller has woken up, the
//! worker may have locked again. So the worker calls [`Lock::offer`] now and then between holds
//! that follow each other closely. [`Lock::lock_if_first`] fails instead of waiting for other
//! callers. [`crate::shard`] bounds the work of a holder.
//!
//! # Alternatives
//!
//! A worker behind a `parking_lot` mutex that callers acquire at full speed waits for hundreds of
//! milliseconds (48 threads on 2 cores: 700 to 970 ms instead of 9 to 20). If the worker left a
//! request in a queue beside the mutex, each holder would need a further read-modify-write when it
//! unlocks. There is no poisoning, because no code here panics while the lock is held.
//!
//! This is one of two modules with unsafe code.

use super::{AtomicU32, Event, Mutex, Ordering, UnsafeCell, spin_loop};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

const LOCKED: u32 = 1;
const GATE: u32 = 1 << 1;
const RESERVED: u32 = 1 << 2;

/// The number of times that a caller looks again.
const CALLER_SPINS: u32 = spins(8);

/// The number of times that a caller at the gate looks again before it parks.
const GATE_SPINS: u32 = spins(20);

/// The number of times that the worker looks again.
const WORKER_SPINS: u32 = spins(30);

/// The number of times that the worker checks whether a caller still waits at the gate. This takes
/// about as long as the caller needs to wake up.
const OFFER_SPINS: u32 = spins(1000);

/// Returns `count`, or zero in a model, which does not spin.
const fn spins(count: u32) -> u32 {
    if cfg!(all(test, timer_loom)) { 0 } else { count }
}

/// A value and its lock. The word comes last, next to the end of the value.
#[repr(C)]
pub(crate) struct Lock<T> {
    /// Held by the only caller that waits for the word.
    gate: Mutex<()>,
    /// The bells of the caller at the gate and of the worker. With one bell for both, a caller that
    /// does not run could hold up the worker.
    caller: Event,
    worker: Event,
    value: UnsafeCell<T>,
    word: AtomicU32,
}

// SAFETY: a shared `Lock` gives access to its value only through a `Guard`, of which there is at
// most one at a time. Sharing the lock therefore only moves access to the `T` between threads, for
// which `T: Send` is sufficient, as for a mutex.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// The offset of the word.
    #[cfg(test)]
    #[allow(dead_code, reason = "used by a test of the layout on 64 bits")]
    pub(crate) const WORD_AT: usize = core::mem::offset_of!(Self, word);

    pub(crate) fn new(value: T) -> Self {
        Self {
            gate: Mutex::new(()),
            caller: Event::default(),
            worker: Event::default(),
            value: UnsafeCell::new(value),
            word: AtomicU32::new(0),
        }
    }

    /// Performs step 1. Returns `None` if the lock stays held or reserved, or a caller waits for
    /// it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // ORDERING: Relaxed, because the swap decides.
        if self.word.load(Ordering::Relaxed) == 0 && self.swap(0, LOCKED) {
            return Some(Guard { lock: self, value: PhantomData });
        }
        self.lock_or_set(LOCKED | GATE | RESERVED, 0, CALLER_SPINS)
    }

    /// Performs step 1, and step 2 if that fails.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        self.lock_at_gate(self.gate.lock())
    }

    /// Performs step 2. Returns `None` if another caller waits already.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_if_first(&self) -> Option<Guard<'_, T>> {
        self.gate.try_lock().map(|gate| self.lock_at_gate(gate))
    }

    fn lock_at_gate(&self, _gate: impl Sized) -> Guard<'_, T> {
        self.wait(LOCKED | RESERVED, GATE, GATE_SPINS)
    }

    /// Performs the worker's step 3. Once it has set `RESERVED`, no other thread locks before it.
    pub(crate) fn lock_reserved(&self) -> Guard<'_, T> {
        self.wait(LOCKED, RESERVED, WORKER_SPINS)
    }

    /// Performs the worker's step 3 except for the wait. Returns `None` if the lock is reserved
    /// now. No caller locks until the worker has called this or
    /// [`lock_reserved`](Self::lock_reserved) again.
    pub(crate) fn lock_or_reserve(&self) -> Option<Guard<'_, T>> {
        self.lock_or_set(LOCKED, RESERVED, WORKER_SPINS)
    }

    /// Locks once the bits `barred` are clear. Sets `bit` while it waits for its bell.
    fn wait(&self, barred: u32, bit: u32, spins: u32) -> Guard<'_, T> {
        loop {
            if let Some(guard) = self.lock_or_set(barred, bit, spins) {
                return guard;
            }
            // ORDERING: Relaxed, because the bell orders this load after the subtraction of a
            // holder that has rung before. A holder that rings later finds this thread asleep.
            self.bell(bit).wait(None, || self.word.load(Ordering::Relaxed) & barred == 0);
        }
    }

    /// Returns the bell of the worker if these bits contain `RESERVED`, and otherwise that of the
    /// caller at the gate.
    fn bell(&self, bits: u32) -> &Event {
        if bits & RESERVED != 0 { &self.worker } else { &self.caller }
    }

    /// Gives a caller that waits at the gate time to wake up and lock. Returns as soon as no
    /// caller waits there.
    pub(crate) fn offer(&self) {
        // ORDERING: Relaxed, because the result only ends the wait early.
        let is_waiting = |_: &u32| self.word.load(Ordering::Relaxed) & GATE != 0;
        (0..OFFER_SPINS).take_while(is_waiting).for_each(|_| spin_loop());
    }

    /// Locks and clears `bit` as soon as the bits `barred` are clear. If they stay set for `spins`
    /// looks, sets `bit` and returns `None`.
    #[cold]
    #[inline(never)]
    fn lock_or_set(&self, barred: u32, bit: u32, spins: u32) -> Option<Guard<'_, T>> {
        let mut looks = 0;
        loop {
            // ORDERING: Relaxed, because the swap decides.
            let word = self.word.load(Ordering::Relaxed);
            if word & barred == 0 {
                if self.swap(word, (word | LOCKED) & !bit) {
                    return Some(Guard { lock: self, value: PhantomData });
                }
            } else if looks < spins {
                looks += 1;
                spin_loop();
            } else if word & bit == bit || self.swap(word, word | bit) {
                return None;
            }
        }
    }

    /// Rings for the worker if it has reserved the lock, and otherwise for the caller at the gate.
    #[cold]
    #[inline(never)]
    fn ring(&self, word: u32) {
        self.bell(word).notify_all();
    }

    /// Returns `true` if a caller waits at the gate, or the worker at its reservation.
    #[cfg(all(test, not(timer_loom)))]
    pub(crate) fn has_waiter(&self) -> bool {
        // ORDERING: Relaxed, because a test only waits for a bit.
        self.word.load(Ordering::Relaxed) & (GATE | RESERVED) != 0
    }

    /// Returns `true` if the worker sleeps until the lock is released.
    #[cfg(all(test, not(timer_loom)))]
    pub(crate) fn worker_sleeps(&self) -> bool {
        self.worker.wake_in_vain()
    }

    #[inline]
    fn swap(&self, old: u32, new: u32) -> bool {
        // ORDERING: AcqRel, because locking must see all that the last holder wrote, and a waiter's
        // bit must be in the word's history. Relaxed on failure, because the caller looks again.
        let is_swapped = self.word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        #[cfg(all(feature = "__tests", not(timer_loom)))]
        if is_swapped && (old ^ new) & LOCKED != 0 {
            super::holds::begin();
        }
        is_swapped
    }
}

/// The right to the value of a [`Lock`], which unlocks when it is dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// A shared guard gives access to the value, so it is `Sync` only if the value is.
    value: PhantomData<&'a mut T>,
}

/// Performs step 4.
impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(all(feature = "__tests", not(timer_loom)))]
        super::holds::end();
        // ORDERING: AcqRel. Release publishes the writes under the lock to the next holder.
        // Acquire, because the result contains the bits of the waiters.
        let word = self.lock.word.fetch_sub(LOCKED, Ordering::AcqRel);
        if word != LOCKED {
            self.lock.ring(word);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Guard`, because it was made by the swap that set LOCKED, and
        // only its end clears LOCKED. It is borrowed shared, so no exclusive reference to the value
        // exists. The value lives as long as the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the only `Guard` is borrowed exclusively, so this is the only
        // reference to the value.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
